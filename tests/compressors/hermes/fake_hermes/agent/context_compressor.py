"""A stand-in with the seams of Hermes' compressor: signature, HTTP call, flags, message keys."""

import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import hermes_time  # type: ignore[import-not-found]


class ContextCompressor:
    def __init__(
        self,
        model: str,
        protect_last_n: int = 3,
        summary_model_override: str | None = None,
        base_url: str = "",
        api_key: str = "",
        config_context_length: int | None = None,
        provider: str = "",
        mode: str = "",
    ) -> None:
        self.model = summary_model_override or model
        self.base_url, self.api_key, self.mode = base_url, api_key, mode
        self.protect_last_n = protect_last_n
        self.context_length = config_context_length
        self.compression_count = 0
        self._last_summary_error: str | None = None
        self._last_summary_fallback_used = False
        self._last_summary_dropped_count = 0
        self._last_compress_aborted = False

    def compress(
        self, messages: list[dict[str, Any]], focus_topic: str | None = None
    ) -> list[dict[str, Any]]:
        sys.stdout.write("chatter on standard output\n")
        if self.mode == "crash":
            raise RuntimeError("the fake broke down")
        if self.mode == "slow":
            time.sleep(60)
        if self.mode == "nothing":
            return messages
        head, tail = messages[:1], messages[-self.protect_last_n :]
        try:
            summary = self._ask(messages[1 : -self.protect_last_n], focus_topic)
        except urllib.error.HTTPError as error:
            self._last_summary_error = json.loads(error.read())["error"]["message"]
            if error.code == 401:
                self._last_compress_aborted = True
                return messages
            self._last_summary_fallback_used = True
            self._last_summary_dropped_count = len(messages) - len(head) - len(tail)
            summary = "no summary could be written"
        self.compression_count += 1
        body = {"role": "user", "content": f"[SUMMARY {self.compression_count}] {summary}"}
        system = {**head[0], "content": head[0]["content"].split("\n\n[Note")[0] + "\n\n[Note]"}
        return [system, {**body, "_compressed_summary": True}, *tail]

    def _ask(self, span: list[dict[str, Any]], focus_topic: str | None) -> str:
        lines = [f"Date {hermes_time.now():%Y-%m-%d}", f"Focus {focus_topic}"]
        if self.mode == "environment":
            lines += [f"{name}={value}" for name, value in sorted(os.environ.items())]
            lines.append(
                "files " + " ".join(p.name for p in Path(os.environ["HERMES_HOME"]).iterdir())
            )
        lines += [f"[{m['role']}]: {m['content']} {m.get('tool_calls', '')}" for m in span]
        lines += [f"(an earlier summary) {m['role']}" for m in span if "_compressed_summary" in m]
        if self.mode == "clients":
            return self._by_other_clients()
        prompt = {"role": "user", "content": "\n".join(lines)}
        call = urllib.request.Request(  # noqa: S310  # the loopback
            f"{self.base_url}/chat/completions",
            data=json.dumps({"model": self.model, "messages": [prompt], "max_tokens": 77}).encode(),
            headers={
                "Authorization": f"Bearer {self.api_key}",
                "Content-Type": "application/json",
            },
        )
        for _ in range(3 if self.mode == "stubborn" else 1):
            try:
                with urllib.request.urlopen(call) as reply:  # noqa: S310
                    return str(json.load(reply)["choices"][0]["message"]["content"])
            except urllib.error.HTTPError as error:
                failure = error
        raise failure

    def _by_other_clients(self) -> str:
        """Ask as OpenAI's own client does, and as a stranger would; return what came of it."""
        import openai

        said = []
        with openai.OpenAI(
            base_url=self.base_url, api_key=self.api_key, _strict_response_validation=True
        ) as client:
            for text in ("é 総", "x" * 3_000_000):
                reply = client.chat.completions.create(
                    model="any", messages=[{"role": "user", "content": text}]
                )
                assert reply.usage
                assert reply.choices[0].message.content == text
                said.append(f"{reply.choices[0].finish_reason} {reply.usage.prompt_tokens}")
        request = urllib.request.Request(  # noqa: S310  # the loopback
            f"{self.base_url}/chat/completions",
            data=b'{"messages": [{"role": "user"}]}',
            headers={"Authorization": "Bearer guess"},
        )
        try:
            urllib.request.urlopen(request).close()  # noqa: S310
        except urllib.error.HTTPError as error:
            said.append(f"{error.code} {json.load(error)['error']['message']}")
        return "\n".join(said)
