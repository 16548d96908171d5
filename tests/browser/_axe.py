"""What axe-core, the accessibility checker, finds in a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
GRAVE = ("serious", "critical")
FAULTS = """async ([selector, grave]) => {
  const found = await axe.run(selector, { resultTypes: ['violations'] });
  const told = (rule, node) => `${rule.id} (${rule.impact}): ${node.target} ${node.failureSummary ?? rule.help}`;
  return found.violations.filter(rule => grave.includes(rule.impact)).flatMap(rule => rule.nodes.map(node => told(rule, node)));
}"""


def serious_faults(page: Any, selector: str) -> list[str]:
    """Check the part of a page that `selector` finds.

    Returns:
        A line for each serious or critical fault: the rule, the element, and how to mend it.
    """
    if not SCRIPT.exists():
        pytest.skip("axe-core is not installed: make labextension")
    assert page.locator(selector).count() > 0, f"nothing to check: {selector}"
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(SCRIPT.read_text(encoding="utf-8"))
    faults: list[str] = page.evaluate(FAULTS, [selector, GRAVE])
    return faults
