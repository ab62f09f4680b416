"""Matchers that say what they did, or do what they should not."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.correspondence import generated


@dataclass(frozen=True)
class Noting:
    """Knows the truth, takes its time, and writes down the pairs that it has matched."""

    log: Path
    seconds: float = 0.0
    # A pair that kills its process, and whether it does so again.
    deadly: str = ""
    again: bool = False
    # A pair that raises.
    bad: str = ""
    fingerprint: str = "noting"
    settings = {"eta": "0.3"}  # noqa: RUF012

    def __call__(self, source: Path, target: Path) -> Any:
        name = f"{source.parent.name}/{source.stem}-{target.stem}"
        if name == self.deadly and (self.again or not self.log.with_suffix(".died").exists()):
            self.log.with_suffix(".died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if name == self.bad:
            raise ValueError("it is a\nbad pair")
        time.sleep(self.seconds)
        with self.log.open("a") as file:
            file.write(f"{name}\n")
        return generated.Warp()(source, target)

    @property
    def calls(self) -> Counter[str]:
        return Counter(self.log.read_text().split() if self.log.exists() else ())
