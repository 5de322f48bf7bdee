"""Write constraints-hashes.txt, the checksums of what constraints.txt names: `python -m tools.hashes`.

`make` installs only what has one of these checksums, apart from torch: its builds for CPUs and GPUs are different files
of one version, often from another place. The checksums come from pip's index, the first if it has several.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from placevalue.common.files import write_whole

ROOT = Path(__file__).parents[1]
PINS, HASHES = ROOT / "constraints.txt", ROOT / "constraints-hashes.txt"
UNHASHED = "torch"
HEAD = "# Checksums of what constraints.txt names, without torch. Written by `python -m tools.hashes`.\n"
PYTHONS = re.compile(r"py3|(py|cp)31[1-4]")
FREE_THREADED = {"cp313t", "cp314t"}
PLATFORMS = re.compile(r"any|(manylinux|linux).*_(x86_64|aarch64)|macosx_.*_(x86_64|arm64|universal2)|win_amd64")
Files = Sequence[tuple[str, str]]
"""Names of files and their checksums."""


def read_pins(text: str) -> dict[str, str]:
    """The versions in a file of constraints, by package."""
    return dict(re.findall(r"^([\w.-]+)==([\w.+!-]+)", text, re.MULTILINE))


def fits(wheel: str, version: str) -> bool:
    """Whether a wheel is one of this version that a supported Python on a usual machine can install."""
    _, found, *rest = wheel.removesuffix(".whl").split("-")
    pythons, abis, platforms = (set(tags.split(".")) for tags in rest[-3:])
    usual = any(map(PLATFORMS.fullmatch, platforms))
    supported = "abi3" in abis or any(map(PYTHONS.fullmatch, pythons))
    return found == version and usual and supported and not FREE_THREADED & abis


def choose(files: Files, version: str) -> list[str]:
    """The checksums of a version's wheels."""
    return sorted({checksum for name, checksum in files if name.endswith(".whl") and fits(name, version)})


def list_files(packages: Sequence[str]) -> Iterator[Files]:
    """What the index has of each package. pip has no command for this, so this asks its internals."""
    from pip._internal.commands.download import DownloadCommand
    from pip._internal.index.collector import parse_links
    from pip._internal.models.link import Link

    command = DownloadCommand("download", "")
    with command.main_context():
        options, _ = command.parse_args([])
        finder = command._build_package_finder(options, command.get_default_session(options))
        for package in packages:
            place = finder.search_scope.get_index_urls_locations(package)[0]
            page = finder._link_collector.fetch_response(Link(place))
            links = parse_links(page) if page else ()
            yield [(link.filename, link.hash) for link in links if link.hash_name == "sha256" and link.hash]


def main() -> int:
    """Write the file."""
    pins = {name: version for name, version in read_pins(PINS.read_text()).items() if name != UNHASHED}
    text = HEAD
    for (name, version), files in zip(pins.items(), list_files(list(pins)), strict=True):
        found = choose(files, version)
        if not found:
            print(f"the index has no wheel of {name} {version}: pin another version in {PINS.name}", file=sys.stderr)
            return 1
        text += " \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{checksum}" for checksum in found)]) + "\n"
    write_whole(HASHES, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
