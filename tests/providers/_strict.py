"""Strict fakes of the vendors: each reads an encoded body and refuses what the real one refuses.

A checker knows nothing of our own types. It holds the vendor's rules as its documents and its error messages tell
them: roles, pairing, alphabets, emptiness, media, and that sealed blocks are the ones it made itself.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

Body = Mapping[str, Any]


class Refused(AssertionError):  # what a server does, not what went wrong with it
    """The request is a 400."""


def refuse(condition: object, why: str) -> None:
    """Refuse the request where the condition holds."""
    if condition:
        raise Refused(why)


def owned(seal: Any, owner: str, where: str) -> None:
    """Refuse a sealed value that somebody else made, or that was changed on the way."""
    refuse(not isinstance(seal, str) or not seal.startswith(f"sealed:{owner}:"), f"{where}: invalid signature {seal!r}")


def words(text: Any, where: str) -> None:
    """Refuse text without a visible character."""
    refuse(not isinstance(text, str) or not text.strip(), f"{where}: text must contain non-whitespace text")


def media(kind: Any, data: Any, allowed: tuple[str, ...], where: str) -> None:
    """Refuse another media type, and data that is empty or no base64."""
    refuse(not isinstance(kind, str) or not kind.startswith(allowed), f"{where}: unsupported media type {kind}")
    try:
        refuse(not base64.b64decode(data, validate=True), f"{where}: empty data")
    except (binascii.Error, ValueError, TypeError) as exc:
        raise Refused(f"{where}: data is no base64") from exc


def ids(found: Sequence[Any], alphabet: str) -> None:
    """Refuse ids of another alphabet, and one that comes twice."""
    refuse(len(set(found)) != len(found), f"ids must be unique: {found}")
    for id_ in found:
        refuse(not isinstance(id_, str) or not re.fullmatch(alphabet, id_), f"id {id_!r} does not match {alphabet}")


def tool_name(name: Any) -> None:
    """Refuse a name outside the alphabet of tools."""
    refuse(not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name), f"name {name!r}")


def image_url(part: Mapping[str, Any], url: Any, allowed: tuple[str, ...]) -> None:
    """Refuse a data URL of another media type."""
    found = re.fullmatch(r"data:([^;]+);base64,(.*)", url or "", re.DOTALL)
    if found is None:
        raise Refused(f"no data URL: {part}")
    media(found[1], found[2], allowed, "image_url")


PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
PDF = "application/pdf"


# -- messages -------------------------------------------------------------------------------------------------------
def check_messages(body: Body, owner: str, *, sees: bool = True, prefill: bool = True) -> None:
    """Refuse what the Messages API refuses."""
    turns = body["messages"]
    refuse(not turns or turns[0]["role"] != "user", "the first message must use the user role")
    refuse(any(a["role"] == b["role"] for a, b in pairwise(turns)), "roles must alternate")
    paused = turns[-1]["content"][-1]["type"] in ("server_tool_use", "web_search_tool_result")
    refuse(
        turns[-1]["role"] == "assistant" and not (prefill or paused), "the conversation must end with a user message"
    )
    open_calls: list[Any] = []
    seen: list[Any] = []
    server: list[str] = []
    for at, turn in enumerate(turns):
        content, where = turn["content"], f"messages.{at}"
        refuse(not content, f"{where}: all messages must have non-empty content")
        results = [item["tool_use_id"] for item in content if item["type"] == "tool_result"]
        refuse(sorted(results) != sorted(open_calls), f"{where}: calls {open_calls} have the results {results}")
        refuse(any(i["type"] == "tool_result" for i in content[len(results) :]), f"{where}: results must come first")
        open_calls = [item["id"] for item in content if item["type"] == "tool_use"]
        seen += open_calls
        refuse(open_calls and turn["role"] == "user", f"{where}: a user cannot call")
        for item in content:
            _messages_item(item, turn["role"], owner, server, sees=sees)
        refuse(content[-1]["type"] in ("thinking", "redacted_thinking"), f"{where}: the final block cannot be thinking")
    refuse(open_calls, f"calls without results: {open_calls}")
    ids(seen, r"[a-zA-Z0-9_-]{1,64}")
    _thinking_begins(body)
    _server_calls(turns, server)


def _messages_item(item: Mapping[str, Any], role: str, owner: str, server: list[str], *, sees: bool) -> None:
    kind = item["type"]
    match kind:
        case "text":
            words(item["text"], kind)
            for citation in item.get("citations") or ():
                owned(citation["encrypted_index"], owner, "citation")
        case "image" | "document":
            refuse(role != "user", f"{kind} in an assistant's message")
            _messages_media(item, sees=sees)
        case "tool_use":
            tool_name(item["name"])
            refuse(not isinstance(item["input"], dict), "input must be an object")
        case "tool_result":
            content = item.get("content")
            refuse(item.get("is_error") and not content, "content cannot be empty if is_error is true")
            for part in content if isinstance(content, list) else ():
                _messages_item(part, "user", owner, server, sees=sees)
        case "thinking":
            refuse(role != "assistant", "thinking in a user's message")
            owned(item["signature"], owner, kind)
        case "redacted_thinking":
            refuse(role != "assistant", "thinking in a user's message")
            owned(item["data"], owner, kind)
        case "server_tool_use":
            server.append(item["id"])
        case "web_search_tool_result":
            refuse(item["tool_use_id"] not in server, f"unexpected tool_use_id {item['tool_use_id']}")
            owned(item["content"][0]["encrypted_content"], owner, kind)
        case _:
            raise Refused(f"unknown type {kind}")


def _messages_media(item: Mapping[str, Any], *, sees: bool) -> None:
    source = item["source"]
    if source["type"] == "text":
        words(source["data"], "document")
    elif item["type"] == "image":
        refuse(not sees, "this model takes no images")
        media(source["media_type"], source["data"], PICTURES, "image")
    else:
        media(source["media_type"], source["data"], (PDF,), "document")


def _thinking_begins(body: Body) -> None:
    """Refuse budgeted thinking where the calls that are gone on with did not begin with a thought."""
    if body.get("thinking", {}).get("type") != "enabled":
        return
    turns = body["messages"]
    kinds = [[item["type"] for item in turn["content"]] for turn in turns]
    if "tool_result" not in kinds[-1]:
        return
    began = max(at for at in range(len(turns) - 1) if turns[at]["role"] == "user" and set(kinds[at]) != {"tool_result"})
    refuse(kinds[began + 1][0] not in ("thinking", "redacted_thinking"), "Expected `thinking`, but found another")


def _server_calls(turns: Sequence[Mapping[str, Any]], server: Sequence[str]) -> None:
    """Refuse a call of the server's own that has no answer, once the user has gone on."""
    answers = {item.get("tool_use_id") for turn in turns for item in turn["content"] if item["type"] != "tool_result"}
    spoken = [at for at, turn in enumerate(turns) if turn["role"] == "user" and _speaks(turn)]
    late = {item.get("id") for turn in turns[max(spoken, default=0) :] for item in turn["content"]}
    refuse(set(server) - answers - late, "server calls without their answer")


def _speaks(turn: Mapping[str, Any]) -> bool:
    return any(item["type"] != "tool_result" for item in turn["content"])


# -- responses ------------------------------------------------------------------------------------------------------
def check_responses(body: Body, owner: str, *, sees: bool = True, prefill: bool = True) -> None:
    """Refuse what the Responses API refuses."""
    del prefill
    items = body["input"]
    refuse(not items, "input must not be empty")
    calls = [item["call_id"] for item in items if item["type"] == "function_call"]
    outputs = [item["call_id"] for item in items if item["type"] == "function_call_output"]
    ids(calls, r"[a-zA-Z0-9_-]{1,64}")
    refuse(calls != outputs, f"no tool output found for call: {calls} {outputs}")
    for item, after in pairwise([*items, None]):
        _responses_item(item, owner, sees=sees)
        if item["type"] == "reasoning":
            theirs = after is not None and after["type"] != "function_call_output" and after.get("role") != "user"
            refuse(not theirs, "reasoning was provided without its required following item")
    for call, output in zip(calls, outputs, strict=True):
        where = [item.get("call_id") for item in items]
        refuse(where.index(call) > len(where) - 1 - where[::-1].index(output), "an output before its call")


def _responses_item(item: Mapping[str, Any], owner: str, *, sees: bool) -> None:
    match item["type"]:
        case "message" if item["role"] == "assistant":
            words(item["content"], "message")
            refuse(item.get("phase") not in (None, "commentary", "final_answer"), "phase")
        case "message":
            refuse(not item["content"], "empty message")
            for part in item["content"]:
                _responses_part(part, sees=sees)
        case "function_call":
            tool_name(item["name"])
            refuse(not isinstance(json.loads(item["arguments"]), dict), "arguments must be an object")
        case "function_call_output":
            for part in item["output"] if isinstance(item["output"], list) else ():
                _responses_part(part, sees=sees)
        case "reasoning":
            owned(item["encrypted_content"], owner, "reasoning")
        case "web_search_call":
            owned(item["id"], owner, "web_search_call")
        case other:
            raise Refused(f"unknown item {other}")


def _responses_part(part: Mapping[str, Any], *, sees: bool) -> None:
    match part["type"]:
        case "input_text":
            words(part["text"], "input_text")
        case "input_image":
            refuse(not sees, "this model takes no images")
            image_url(part, part["image_url"], PICTURES)
        case "input_file":
            refuse(not part["filename"], "filename")
            image_url(part, part["file_data"], (PDF,))
        case other:
            raise Refused(f"unknown part {other}")


# -- generateContent ------------------------------------------------------------------------------------------------
PLACEHOLDER = "skip_thought_signature_validator"


def check_generate(body: Body, owner: str, *, sees: bool = True, prefill: bool = True) -> None:
    """Refuse what the Gemini API refuses of a model that signs its calls."""
    del prefill
    turns = body["contents"]
    refuse(not turns or turns[0]["role"] != "user", "a conversation begins with the user")
    refuse(any(a["role"] == b["role"] for a, b in pairwise(turns)), "a call comes right after a turn of the user")
    open_calls: list[Any] = []
    seen: list[Any] = []
    for turn in turns:
        refuse(not turn["parts"], "must include at least one parts field")
        answers = [_key(part["functionResponse"]) for part in turn["parts"] if "functionResponse" in part]
        refuse(answers != open_calls, f"function responses {answers} for the calls {open_calls}")
        calls = [part for part in turn["parts"] if "functionCall" in part]
        open_calls = [_key(part["functionCall"]) for part in calls]
        seen += [part["functionCall"]["id"] for part in calls]
        refuse(calls and turn["role"] != "model", "a user cannot call")
        refuse(calls and not calls[0].get("thoughtSignature"), "Function call is missing a thought_signature")
        for part in turn["parts"]:
            _generate_part(part, turn["role"], owner, sees=sees)
    refuse(open_calls, "calls without responses")
    ids(seen, r".{1,128}")


def _key(value: Mapping[str, Any]) -> tuple[Any, Any]:
    return value["id"], value["name"]


def _generate_part(part: Mapping[str, Any], role: str, owner: str, *, sees: bool) -> None:
    seal = part.get("thoughtSignature")
    if seal is not None and seal != PLACEHOLDER:
        owned(seal, owner, "thoughtSignature")
    refuse(seal is not None and role != "model", "a user's part is signed")
    refuse(part.get("thought"), "a summary of thoughts came back")
    if "text" in part:
        refuse(not part["text"] and not seal, "an empty part")
    elif "inlineData" in part:
        refuse(not sees and part["inlineData"]["mimeType"].startswith("image/"), "this model takes no images")
        media(part["inlineData"]["mimeType"], part["inlineData"]["data"], _GEMINI_MEDIA, "inlineData")
    elif "functionCall" in part:
        tool_name(part["functionCall"]["name"])
        refuse(not isinstance(part["functionCall"]["args"], dict), "args must be an object")
    elif "functionResponse" in part:
        refuse(not isinstance(part["functionResponse"]["response"], dict), "response must be an object")
        for inner in part["functionResponse"].get("parts", ()):
            _generate_part(inner, role, owner, sees=sees)
    else:
        refuse("executableCode" not in part, f"unknown part {part}")
        owned(seal, owner, "executableCode")


_GEMINI_MEDIA = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", PDF, "audio/", "video/")


# -- chat completions -----------------------------------------------------------------------------------------------
def check_chat(
    body: Body,
    owner: str,
    *,
    sees: bool = True,
    prefill: bool = True,
    alphabet: str = r"[a-zA-Z0-9_-]{1,40}",
    strict: bool = False,
    back: str | None = None,
    tools: bool = True,
) -> None:
    """Refuse what hosts of Chat Completions refuse, each its own: `strict` roles, reasoning `back` or not, no tools."""
    turns = body["messages"]
    refuse(not turns, "messages must not be empty")
    open_calls: list[Any] = []
    seen: list[Any] = []
    last = ""
    for turn in turns:
        role = turn["role"]
        if role == "tool":
            refuse(not tools, "this host knows no tools")
            refuse(not open_calls or turn["tool_call_id"] != open_calls.pop(0), "Unexpected role 'tool'")
            words(turn["content"], "tool")
        else:
            refuse(open_calls, f"calls without results: {open_calls}")
            refuse(role == last, f"roles must alternate, two of {role}")
            refuse(strict and role == "user" and last == "tool", "Unexpected role 'user' after role 'tool'")
            calls = turn.get("tool_calls", [])
            open_calls = [call["id"] for call in calls]
            seen += open_calls
            _chat_said(turn, owner, sees=sees, back=back, tools=tools)
        last = role
    refuse(open_calls, "calls without results")
    refuse((strict or not prefill) and last == "assistant", "Expected last role User or Tool")
    ids(seen, alphabet)


def _chat_said(turn: Mapping[str, Any], owner: str, *, sees: bool, back: str | None, tools: bool) -> None:
    allowed = {"role", "content", "tool_calls", "reasoning_details", "refusal", back} - {None}
    refuse(turn.keys() - allowed, f"unknown field {turn.keys() - allowed}")
    content, calls = turn["content"], turn.get("tool_calls")
    refuse(turn["role"] == "user" and not content, "empty content")
    refuse(not content and not calls and not turn.get("refusal"), "must have either content or tool_calls")
    refuse(back and calls and back not in turn, f"{back} must be passed back")
    for detail in turn.get("reasoning_details", ()):
        owned(detail["data"], owner, "reasoning_details")
    if back and turn.get(back):
        owned(turn[back], owner, back)
    for part in content if isinstance(content, list) else ():
        if part["type"] == "text":
            words(part["text"], "text")
        else:
            refuse(not sees, "this model takes no images")
            image_url(part, part["image_url"]["url"], PICTURES)
    for call in calls or ():
        refuse(not tools, "this host knows no tools")
        refuse(call.keys() - {"id", "type", "function", "extra_content"}, f"unknown field in {call}")
        if sealed := call.get("extra_content"):
            owned(sealed["signature"], owner, "extra_content")
        tool_name(call["function"]["name"])
        refuse(not isinstance(json.loads(call["function"]["arguments"]), dict), "arguments must be an object")


# -- ollama ---------------------------------------------------------------------------------------------------------
def check_ollama(body: Body, owner: str, *, sees: bool = True, prefill: bool = True) -> None:
    """Refuse what Ollama and the templates behind it refuse."""
    del prefill
    open_calls: list[tuple[Any, Any]] = []
    seen: list[Any] = []
    last = ""
    refuse(not body["messages"], "messages must not be empty")
    for turn in body["messages"]:
        role = turn["role"]
        if role == "tool":
            refuse(not open_calls, "a result without its call")
            refuse((turn["tool_call_id"], turn["tool_name"]) != open_calls.pop(0), "a result of another call")
            words(turn["content"], "tool")
            last = role
            continue
        refuse(open_calls, "calls without results")
        refuse(role == last, "roles must alternate")
        calls = turn.get("tool_calls", [])
        open_calls = [(call["id"], call["function"]["name"]) for call in calls]
        seen += [call["id"] for call in calls]
        refuse(not turn["content"] and not calls and not turn.get("images"), "an empty message")
        if thought := turn.get("thinking"):
            owned(thought, owner, "thinking")
        for call in calls:
            tool_name(call["function"]["name"])
            refuse(not isinstance(call["function"]["arguments"], dict), "arguments must be an object")
        refuse(turn.get("images") and not sees, "this model takes no images")
        refuse(turn.get("images") and role != "user", "images of an assistant")
        for image in turn.get("images", ()):
            media("image/png", image, PICTURES, "images")
        last = role
    refuse(open_calls, "calls without results")
    ids(seen, r".{1,128}")


Check = Callable[..., None]
