# Each target works from a bare clone: it makes .venv itself and says what is missing. Run any again at will.

PY := .venv/bin/python
NOTEBOOK := notebooks/01_quickstart.ipynb
# Outputs are compared, but for cells tagged nbval-ignore-output, which a model answers afresh.
NBVAL := --nbval --nbval-current-env --nbval-cell-timeout=120 --nbval-sanitize-with notebooks/sanitize.cfg
# The kernel named python3 shall be the one in .venv, whatever else the user has.
export JUPYTER_PREFER_ENV_PATH := 1
export PYTHONUNBUFFERED := 1

.DEFAULT_GOAL := help
.PHONY: perf help demo lab test lint unit notebooks labextension check-lab check-kernels check-slow constraints clean

help:  ## list what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1  \t/p' $(MAKEFILE_LIST) | expand -t 24

demo:  ## install, fetch the small local model, and run the quickstart through a real kernel
	@scripts/setup.sh demo
	@$(PY) -m larik_nb.providers.local fetch --yes
	@$(PY) scripts/run_notebook.py $(NOTEBOOK)
	@printf '\nOpen it in JupyterLab with:  make lab\n'

lab:  ## open the quickstart in JupyterLab
	@scripts/setup.sh demo
	@scripts/labextension.sh
	@$(PY) -m jupyterlab $(if $(filter 0,$(shell id -u)),--allow-root) $(NOTEBOOK)

test: lint labextension unit notebooks  ## everything that guards a change: lint, types, extension, tests, notebooks

lint:  ## style and types
	@scripts/setup.sh dev
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy
	@if command -v node >/dev/null; then echo "$(PY) -m pyright"; PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(PY) -m pyright; \
	  else echo "SKIPPED pyright: Node.js was not found."; fi

labextension:  ## type-check, test and build the JupyterLab extension
	@scripts/setup.sh dev
	@scripts/labextension.sh check

unit:  ## tests
	@scripts/setup.sh dev
	@scripts/chromium.sh
	$(PY) -m pytest tests

notebooks:  ## run the notebooks as a reader would, and compare what they show
	@scripts/setup.sh dev
	LARIK_MODEL=scripted/demo $(PY) -m pytest $(NBVAL) notebooks

check-slow: labextension  ## the slow lanes: built packages, the real local model, Binder, the oldest dependencies
	@scripts/chromium.sh
	$(PY) -m pytest -m slow

check-lab: labextension  ## the extension from the built wheel, in the newest JupyterLab and in the oldest it is for
	@scripts/chromium.sh
	$(PY) -m pytest -m slow tests/test_labextension.py

check-kernels:  ## interrupts, Stop and async cells on older ipykernels, each in an environment of its own; wants uv
	@scripts/setup.sh dev
	@scripts/check_kernels.sh

perf:  ## measure speed, memory and the kernel's work against the limits; wants a quiet machine
	@scripts/setup.sh dev
	$(PY) tests/perf/startup.py && $(PY) tests/perf/streaming.py && $(PY) tests/perf/load.py && $(PY) tests/perf/fallback.py && $(PY) tests/perf/notebook.py

constraints:  ## choose the newest versions that fit, and write them down
	@scripts/setup.sh dev
	uv pip compile pyproject.toml --extra dev --universal --generate-hashes --no-header --upgrade -o constraints/dev.txt

clean:  ## take away all that the other targets made
	rm -rf .venv dist build test-artifacts .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf larik_nb/labextension labextension/node_modules labextension/lib labextension/*.tsbuildinfo
