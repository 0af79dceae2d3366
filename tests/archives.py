"""Archives of files, unpacked by every Python 3.11: the first ones know no filter."""

import tarfile
from pathlib import Path


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Write the archive's files into the folder, by the filter for data where this Python has it."""
    archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
    archive.extractall(folder)
