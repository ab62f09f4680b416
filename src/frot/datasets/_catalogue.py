"""What sets there are: their files, digests, sizes, and where the public has them from."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CATALOGUE", "HALLMARK", "Entry", "File"]

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

    Examples
    --------
    >>> File("gli_85.mat", "https://example.org/GLI_85.mat", None).names
    ('gli_85.mat', 'GLI_85.mat')
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
    """A set: its files, the first with the values, its size, and what to say about it."""

    files: tuple[File, ...]
    shape: tuple[int, int]
    description: str
    citation: str
    licence: str


# Digests are of the files' bytes. Only the .npz files are conversions, whose bytes depend on who
# converted; theirs are of the arrays (see `_digest.of_arrays`).
_ALON = "Alon et al., PNAS 96 (1999) 6745-6750"
_GOLUB = "Golub et al., Science 286 (1999) 531-537"
_SINGH = "Singh et al., Cancer Cell 1 (2002) 203-209"
_NOT_STATED = "none stated by the source"


def _mat(name: str, upstream: str, digest: str | None) -> tuple[File]:
    return (File(name, _SKFEATURE + upstream, digest),)


def _npz(name: str, digest: str) -> tuple[File]:
    return (File(f"{name}.npz", f"{_R_DATA}{name}.RData", digest, converted=True),)


CATALOGUE: dict[str, Entry] = {
    "colon": Entry(
        _mat(
            "colon.mat",
            "colon.mat",
            "ffcdeba03eb67cec403fa1dc9f827c22a6e2c57786bf3e01dfe1b4b3e25e0a2f",
        ),
        (62, 2000),
        "Colon tissue, values discretised to -2, 0 and 2; by their number -1 are the tumours",
        _ALON,
        _NOT_STATED,
    ),
    "leukemia": Entry(
        _mat(
            "leukemia.mat",
            "leukemia.mat",
            "eb92382fb77c968864cb0a92a2c77acde7f88ba7fe5fd5a64b98184e3a05269d",
        ),
        (72, 7070),
        "Acute leukemia, values discretised to -2, 0 and 2; by their number -1 are ALL, 1 AML",
        _GOLUB,
        _NOT_STATED,
    ),
    "prostate_ge": Entry(
        _mat(
            "prostate_ge.mat",
            "Prostate_GE.mat",
            "050b598534dbc662f23e30f39b41354b61d02ab8567837bcf9b1091c1c636ab4",
        ),
        (102, 5966),
        "Prostate tissue; by their number 1 are normal, 2 tumours",
        _SINGH,
        _NOT_STATED,
    ),
    "gli_85": Entry(
        _mat("gli_85.mat", "GLI_85.mat", None),
        (85, 22283),
        "Gliomas of two kinds; no digest is known, so that only the shape is checked",
        "Freije et al., Cancer Research 64 (2004) 6503-6510",
        _NOT_STATED,
    ),
    "alon": Entry(
        _npz("alon", "0ca1b1c485a48bca886dede2525008402bc27929c4f1f93282740ea9236f3744"),
        (62, 2000),
        "Colon tissue: 40 tumours (t), 22 normal (n); the continuous version of colon",
        _ALON,
        "MIT (datamicroarray)",
    ),
    "golub": Entry(
        _npz("golub", "627e2a1c91e705e204f2a61545ceed8876081d8c0b5867cfe02dc5f5dfdda9e6"),
        (72, 7129),
        "Acute leukemia: 47 ALL, 25 AML; the continuous version of leukemia",
        _GOLUB,
        "MIT (datamicroarray)",
    ),
    "singh": Entry(
        _npz("singh", "e887302931206b1186859d06f4fd50b5d14468cc0039065428aff98fb2a5b34b"),
        (102, 12600),
        "Prostate tissue: 52 tumours, 50 normal; the unfiltered version of prostate_ge",
        _SINGH,
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
