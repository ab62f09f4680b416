"""What PF-WILLOW's release holds, by name: what is gone from a copy can be said exactly."""

from __future__ import annotations

__all__ = ["CLASSES", "RELEASED"]

# Of each class, what its photographs' names begin with, and how the ten go on.
_NAMED = {
    "car(G)": ("Cars_", "006a 007a 008b 009b 013b 017a 017b 019a 019b 022a"),
    "car(M)": ("Cars_", "000a 004b 006a 008a 013b 014b 015a 017a 017b 022a"),
    "car(S)": ("Cars_", "000a 001b 004b 008a 014a 014b 015a 028a 028b 031"),
    "duck(S)": ("060_", "0000 0002 0005 0010 0013 0026 0030 0036 0044 0071"),
    "motorbike(G)": ("Motorbikes_", "001a 002a 003b 011a 015a 020 023 038 039 040"),
    "motorbike(M)": ("Motorbikes_", "003b 007a 010b 015a 020 024 030 032 038 039"),
    "motorbike(S)": ("Motorbikes_", "004b 007a 010a 010b 022 024 028 030 032 035"),
    "winebottle(M)": ("246_", "0001 0002 0003 0019 0021 0038 0090 0091 0099 0100"),
    "winebottle(wC)": ("246_", "0018 0019 0021 0029 0038 0042 0052 0061 0090 0091"),
    "winebottle(woC)": ("246_", "0001 0002 0003 0006 0010 0032 0056 0080 0099 0100"),
}
CLASSES = tuple(_NAMED)
RELEASED = {
    name: tuple(f"{start}{end}" for end in ends.split()) for name, (start, ends) in _NAMED.items()
}
