"""The scripted upstream in the place of the services of OpenAI and Anthropic."""

import json
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass
class Service:
    url: str

    def script(self, *rules: dict[str, Any]) -> None:
        answer = httpx.put(f"{self.url}/_control/script", json={"rules": list(rules)})
        assert answer.status_code == 204, answer.text

    def says(self, value: object, **reply: Any) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        self.script({"kind": "chat", "reply": {"text": text, **reply}})

    @property
    def prompts(self) -> list[str]:
        """The bodies of all calls of a chat model."""
        answer = httpx.get(f"{self.url}/_control/requests", trust_env=False).json()
        return [json.dumps(call["body"]) for call in answer["requests"] if call["kind"] == "chat"]

    @property
    def calls(self) -> int:
        return len(self.prompts)
