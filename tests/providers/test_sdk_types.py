"""Bodies that we write fit the parameter types that the vendors publish with their SDKs, and hold nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from larik_nb.types import Block, Message, Request, ToolSpec, assistant, tool_result, user
from tests.providers import test_anthropic as messages_api
from tests.providers import test_openai as responses_api
from tests.providers._decode import encoded

pydantic = pytest.importorskip("pydantic", reason="the test extra has the vendors' SDKs")
messages = pytest.importorskip("anthropic.types.beta.message_create_params", reason="the test extra has the SDKs")
responses = pytest.importorskip("openai.types.responses.response_create_params", reason="the test extra has the SDKs")

APIS = {
    "messages": (messages_api, messages.MessageCreateParamsStreaming, ["on", "optional", "bound", "budget", "small"]),
    "responses": (responses_api, responses.ResponseCreateParamsStreaming, ["thinks", "optional", "quiet", "plain"]),
}
REPLAYED = {
    "messages": ("thinking", "server-tool", "fallback", "refusal", "tool-cut"),
    "responses": ("thinking-two-tools", "server-tool", "refusal", "tool-cut"),
}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"effort": "minimal", "max_tokens": 3_000},
    {"effort": "max"},
    {"thinking_budget": 0, "temperature": 0.5},
    {"thinking_budget": 2_000},
]


def forced(value: Any) -> Any:
    """Return a validated value in full: pydantic checks iterables only as they are read."""
    if isinstance(value, pydantic.BaseModel):
        # The parameter types also take the SDK's own response objects, for what it sends back unchanged.
        value = value.model_dump(exclude_unset=True)
    if isinstance(value, dict):
        return {key: forced(item) for key, item in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return [forced(item) for item in value]


def conversation(api: Any, replayed: tuple[str, ...], model: str) -> tuple[Message, ...]:
    """Return a conversation with every kind of block in it."""
    call = Block(type="tool_use", id="call_1", name="plot", input={"n": 1})
    answers = [message for name in replayed for message in (api.read(name, model)[1], user("Go on."))]
    return (
        user("Look.", api.PNG, api.PDF, api.NOTE),
        assistant("I will.", call, api.PNG),
        user(tool_result("call_1", "done", images=[api.PNG, api.PDF]), "And?"),
        *answers,
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", APIS)
def test_bodies_fit_the_published_types(name: str) -> None:
    """Nothing is missing, misspelt or of another type, for every kind of model and setting."""
    api, params, models = APIS[name]
    adapter = pydantic.TypeAdapter(params)
    tools = (ToolSpec(name="plot", description="Draws.", parameters={"type": "object", "properties": {}}),)
    for model in [*models, "unknown"]:
        for settings in SETTINGS:
            asked = conversation(api, REPLAYED[name], model)
            body = encoded(
                api.ADAPTER, Request(model=model, messages=asked, system="Be brief.", tools=tools, **settings)
            ).body
            allowed = {key: value for key, value in body.items() if key not in ("temperature", "top_p")}
            assert forced(adapter.validate_python(allowed)) == allowed
