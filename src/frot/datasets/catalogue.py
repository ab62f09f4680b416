"""The data sets: what they are, where they are looked for, fetched and verified."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from numpy.typing import NDArray

from frot._base.errors import InputError
from frot._base.files import check_path, make_folder, replacing

_SKFEATURE = "https://github.com/jundongl/scikit-feature/raw/master/skfeature/data/"
_GSEAPY = "https://github.com/zqfang/GSEApy/raw/master/tests/extdata/"
_R_DATA = "https://github.com/ramhiser/datamicroarray/blob/master/data/"


@dataclass(frozen=True)
class File:
    """One file of a set.

    Parameters
    ----------
    name : str
        What it is called on disk; the last part of `url` is looked for too.
    url : str
        Its public source.
    sha256 : str or None
        Of the bytes, or of the arrays where `converted`; None where nobody could compute it.
    converted : bool
        Whether the public file has to be converted by hand, so that it is never downloaded.
    """

    name: str
    url: str
    sha256: str | None
    converted: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names it may have on disk."""
        upstream = self.url.rsplit("/", 1)[-1]
        return (self.name,) if self.converted or upstream == self.name else (self.name, upstream)


@dataclass(frozen=True)
class Entry:
    """A data set of the catalogue: files, the first with the values, size, and what to say."""

    files: tuple[File, ...]
    shape: tuple[int, int]
    description: str
    citation: str
    licence: str


# Digests are of the files' bytes. Only the .npz files are conversions, whose bytes depend on who
# converted; theirs are of the arrays (see `digest_of_arrays`).
_PAPERS = {
    "Alon": "Alon et al., PNAS 96 (1999) 6745-6750",
    "Golub": "Golub et al., Science 286 (1999) 531-537",
    "Singh": "Singh et al., Cancer Cell 1 (2002) 203-209",
}
_NOT_STATED = "none stated by the source"


def _mat(upstream: str, digest: str | None) -> tuple[File]:
    return (File(f"{upstream.lower()}.mat", f"{_SKFEATURE}{upstream}.mat", digest),)


def _npz(name: str, digest: str) -> tuple[File]:
    return (File(f"{name}.npz", f"{_R_DATA}{name}.RData", digest, converted=True),)


CATALOGUE: dict[str, Entry] = {
    "colon": Entry(
        _mat("colon", "ffcdeba03eb67cec403fa1dc9f827c22a6e2c57786bf3e01dfe1b4b3e25e0a2f"),
        (62, 2000),
        "Colon tissue, values discretised to -2, 0 and 2; by their number -1 are the tumours",
        _PAPERS["Alon"],
        _NOT_STATED,
    ),
    "leukemia": Entry(
        _mat("leukemia", "eb92382fb77c968864cb0a92a2c77acde7f88ba7fe5fd5a64b98184e3a05269d"),
        (72, 7070),
        "Acute leukemia, values discretised to -2, 0 and 2; by their number -1 are ALL, 1 AML",
        _PAPERS["Golub"],
        _NOT_STATED,
    ),
    "prostate_ge": Entry(
        _mat("Prostate_GE", "050b598534dbc662f23e30f39b41354b61d02ab8567837bcf9b1091c1c636ab4"),
        (102, 5966),
        "Prostate tissue; by their number 1 are normal, 2 tumours",
        _PAPERS["Singh"],
        _NOT_STATED,
    ),
    "gli_85": Entry(
        _mat("GLI_85", None),
        (85, 22283),
        "Gliomas of two kinds; no digest is known, so that only the shape is checked",
        "Freije et al., Cancer Research 64 (2004) 6503-6510",
        _NOT_STATED,
    ),
    "alon": Entry(
        _npz("alon", "0ca1b1c485a48bca886dede2525008402bc27929c4f1f93282740ea9236f3744"),
        (62, 2000),
        "Colon tissue: 40 tumours (t), 22 normal (n); the continuous version of colon",
        _PAPERS["Alon"],
        "MIT (datamicroarray)",
    ),
    "golub": Entry(
        _npz("golub", "627e2a1c91e705e204f2a61545ceed8876081d8c0b5867cfe02dc5f5dfdda9e6"),
        (72, 7129),
        "Acute leukemia: 47 ALL, 25 AML; the continuous version of leukemia",
        _PAPERS["Golub"],
        "MIT (datamicroarray)",
    ),
    "singh": Entry(
        _npz("singh", "e887302931206b1186859d06f4fd50b5d14468cc0039065428aff98fb2a5b34b"),
        (102, 12600),
        "Prostate tissue: 52 tumours, 50 normal; the unfiltered version of prostate_ge",
        _PAPERS["Singh"],
        "MIT (datamicroarray)",
    ),
    "chowdary": Entry(
        _npz("chowdary", "e88f5fe99e2b30fda4b0bf3ecacdb737e90457735b6982c770864e8c2d218204"),
        (104, 22283),
        "62 breast and 42 colon tumours, on the chip of gli_85",
        "Chowdary et al., Journal of Molecular Diagnostics 8 (2006) 31-39",
        "MIT (datamicroarray)",
    ),
    "gravier": Entry(
        _npz("gravier", "95f48ecbec55d5b70ed11b29af3b4b39215e83c7b5bfca292ac05014e055127a"),
        (168, 2905),
        "Small breast tumours by outcome: 111 good, 57 poor",
        "Gravier et al., Genes, Chromosomes and Cancer 49 (2010) 1125-1134",
        "MIT (datamicroarray)",
    ),
    "pomeroy": Entry(
        _npz("pomeroy", "2891cce40d11f0ef1628a42be80705d4b0a05e4aacedf5fc31ed92a07335e67f"),
        (60, 7128),
        "Embryonal tumours of the nervous system by outcome: 39 survived, 21 died",
        "Pomeroy et al., Nature 415 (2002) 436-442",
        "MIT (datamicroarray)",
    ),
    "leukemia_gsea": Entry(
        (
            File(
                "Leukemia_hgu95av2.trim.txt",
                _GSEAPY + "Leukemia_hgu95av2.trim.txt",
                "96d17b1600f98936a15ff140604f753ac4a450ae8daeb842ce23e4082c6c0443",
            ),
            File(
                "Leukemia.cls",
                _GSEAPY + "Leukemia.cls",
                "87831b330868d7461e9ecd203cdab9bb7daeff382b3c8f90583064549168cd58",
            ),
        ),
        (48, 11548),
        "Acute leukemia with gene symbols, for gene sets: 24 ALL, 24 AML",
        "Armstrong et al., Nature Genetics 30 (2002) 41-47",
        "BSD-3-Clause (GSEApy)",
    ),
}

HALLMARK = File(
    "h.all.v7.0.symbols.gmt",
    _GSEAPY + "h.all.v7.0.symbols.gmt",
    "4803c09aae50bbd96d53fc681bd5545a4c89278993c15145dd7b7c994f893516",
)


def digest_of_file(path: Path) -> str:
    """Return the digest of a file's bytes."""
    # hashlib.file_digest is not in Python 3.10; none of the files is large.
    return hashlib.sha256(path.read_bytes()).hexdigest()


def digest_of_arrays(X: NDArray[Any], y: NDArray[Any]) -> str:
    """Return the digest of values and labels, whoever wrote them into whichever container.

    X, (n, d), is taken as float32, which is what the conversions hold.
    """
    labels = "\n".join(str(label) for label in y.tolist())
    return hashlib.sha256(X.astype("<f4").tobytes() + labels.encode()).hexdigest()


def folders(root: str | os.PathLike[str] | None = None) -> tuple[Path, ...]:
    """Return the folders to look in, first choice first.

    A `root` that was given is the only one: data from elsewhere would come as a surprise.
    """
    if root is not None:
        return (check_path(root, "root").expanduser(),)
    named = os.environ.get("FROT_DATA")
    places = [Path(named).expanduser()] if named else []
    # src/frot/datasets/catalogue.py; an installed package has no pyproject.toml above it.
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "pyproject.toml").is_file():
        places.append(checkout.parent / "shared" / "data")
    places.append(Path.cwd().parent / "shared" / "data")
    places.append(cache_folder())
    return tuple(dict.fromkeys(places))


def cache_folder() -> Path:
    """Return the folder of downloads, where the system keeps what can be fetched again."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "frot" / "data"


def find(file: File, places: Sequence[Path]) -> Path | None:
    """Return the first path at which a file is, in a folder or in ``expression`` below it."""
    for folder in places:
        for name in file.names:
            for path in (folder / "expression" / name, folder / name):
                if path.is_file():
                    return path
    return None


def fetch(
    file: File, name: str, *, root: str | os.PathLike[str] | None = None, download: bool = False
) -> Path:
    """Return the path of a checked file, downloading it only where `download` says so.

    `name` is the set it belongs to, for messages; `root` is the only folder to look in, and to
    download to. A file that is not there (the message says where to get it), cannot be downloaded,
    or is not the one that its digest stands for raises `InputError`.
    """
    places = folders(root)
    path = find(file, places)
    if path is None and download and not file.converted:
        path = _download(file, make_folder(cache_folder() if root is None else places[0]))
    if path is None:
        raise InputError(_missing(file, name, places))
    # What has been converted is checked by its arrays, once they are read.
    if not file.converted:
        _check(file, path)
    return path


def _missing(file: File, name: str, places: tuple[Path, ...]) -> str:
    looked = ", ".join(str(place) for place in places)
    begin = f"the data set {name!r} is not there: no {file.name} in {looked}"
    if file.converted:
        return (
            f"{begin}; get {file.url}, which R reads, write its x as X (float32), its y as y "
            f"(strings) and the column names as genes into {file.name} with numpy.savez, and set "
            "FROT_DATA to that folder"
        )
    return (
        f"{begin}; pass download=True, or get {file.url} and set FROT_DATA to the folder it is in"
    )


def _check(file: File, path: Path) -> None:
    try:
        digest = digest_of_file(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if file.sha256 is not None and digest != file.sha256:
        raise InputError(
            f"{path} is not the {file.name} that is meant: its SHA-256 begins {digest[:12]}, not "
            f"{file.sha256[:12]}; remove it and get {file.url}"
        )


def _download(file: File, folder: Path) -> Path:
    path = folder / file.name
    print(f"frot: downloading {file.url} to {path}", file=sys.stderr)
    with replacing(path) as draft:
        try:
            with urlopen(file.url, timeout=30.0) as answer:
                draft.write_bytes(answer.read())
        except OSError as error:
            reason = getattr(error, "reason", None) or error
            raise InputError(
                f"{file.url} cannot be downloaded: {reason}; get it another way and set FROT_DATA "
                "to the folder it is in"
            ) from None
        # Before it takes its name, so that a wrong file is never left behind.
        _check(file, draft)
    return path
