"""Make the Citeseer that comes with the package: ``python tools/bundle_citeseer.py FOLDER_WITH_ind.citeseer_FILES``.

The files are checked against their digests. The digest of the result has to stand in ``src/everynode/datasets/digests.txt``.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from everynode.datasets import bundled, planetoid
from everynode.datasets.files import verify

TARGET = Path(__file__).parents[1] / "src" / "everynode" / "datasets" / bundled.CITESEER


def pack_folder(folder: Path) -> bytes:
    """The bundle's bytes from the eight files in a folder."""
    files = {}
    for part in planetoid.PLANETOID_PARTS:
        path = folder / f"ind.citeseer.{part}"
        files[part] = path.read_bytes()
        verify(files[part], f"CiteSeer/raw/{path.name}", path, "Fetch it again.")
    return bundled.pack(planetoid.read(files, str(folder / "ind.citeseer")))


def main() -> None:
    """Write the bundle and say its digest."""
    content = pack_folder(Path(sys.argv[1]))
    TARGET.write_bytes(content)
    print(f"{hashlib.sha256(content).hexdigest()}  {bundled.CITESEER}")


if __name__ == "__main__":
    main()
