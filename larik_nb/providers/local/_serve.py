"""The child process: llama.cpp's HTTP server for one model, until the parent is gone.

Run by its path, not as a module, so that nothing of the parent's working directory or of this package is imported.
Reads one line of JSON from standard input (`path`, `alias`, `api_key`, `window`, `threads`), answers one line
(`{"address": "http://127.0.0.1:port"}`) on standard output once it serves, and ends when standard input does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

PROMPT_CACHE_MIB = 256
ERRORS_ONLY = 1


def main() -> None:
    """Serve the model that standard input names."""
    # The kernel's interrupt is for the answer, not for the server that must give the next one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings = json.loads(sys.stdin.buffer.readline())
    ending = threading.Thread(target=_end_with_parent, daemon=True)
    ending.start()
    # Native code may print: what it prints goes to the log, and the answer keeps a descriptor of its own.
    with os.fdopen(os.dup(1), "w", encoding="ascii") as answer:
        os.dup2(2, 1)
        try:
            server = _server(settings)
        except RuntimeError as error:
            sys.exit(f"{error}")
        answer.write(json.dumps({"address": server.listening_address}) + "\n")
    ending.join()


def _server(settings: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["alias"]}
    params.api_keys = [settings["api_key"]]
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel = settings["window"], 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.ui, params.offline, params.endpoint_slots = False, True, False
    params.cors_origins = ""  # any page in the browser may ask otherwise
    params.cache_ram_mib = PROMPT_CACHE_MIB  # 8 GiB otherwise, more than a small machine has
    params.verbosity = ERRORS_ONLY  # prompts stay out of the log
    return xllamacpp.Server(params)


def _end_with_parent() -> None:
    """Wait for the end of standard input: the parent closed it, or is gone however it went."""
    # Not through sys.stdin: its lock, held here for good, would turn an exit of the main thread into a crash.
    while os.read(0, 1):
        continue
    os._exit(0)  # native threads would keep a plain exit waiting


if __name__ == "__main__":
    main()
