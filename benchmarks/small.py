"""Small problems through the front door, where most people start.

    python benchmarks/small.py [--entropic] [--exact]

Same process, one thread, least processor time of many calls; ours from points to a certified
answer, validation and all. Peers that are not installed are named: ``pip install "frot[bench]"``
brings OTT-JAX.
"""

from __future__ import annotations

import argparse

from _common import table  # isort: skip  (sets the number of threads)

from _small_entropic import entropic_rows
from _small_exact import exact_rows, import_rows


def main() -> None:
    """Print the tables that were asked for, both if none was."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--exact", action="store_true", help="only the exact solver's rows")
    parser.add_argument("--entropic", action="store_true", help="only the entropic solver's rows")
    options = parser.parse_args()
    both = options.exact == options.entropic
    if both or options.exact:
        table(["exact", "frot ms", "peer", "peer ms", "ratio"], exact_rows())
        print()
        table(["import at the first solve", "seconds", "loads"], import_rows())
        print()
    if both or options.entropic:
        header, rows = entropic_rows()
        table(header, rows)


if __name__ == "__main__":
    main()
