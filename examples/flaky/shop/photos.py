"""Keeps at most eight photos in a folder; the ninth makes room for itself."""

import os
import tempfile

ROOM = 8


def keep(folder, photo):
    """Writes a photo under a new name, removes "the oldest" if there are too many, and returns the new name."""
    handle, path = tempfile.mkstemp(dir=folder, suffix=".jpg")
    os.write(handle, photo)
    os.close(handle)
    names = os.listdir(folder)
    if len(names) > ROOM:
        # A listing is in no promised order: its first entry is whichever name the file system hashes lowest.
        os.remove(os.path.join(folder, names[0]))
    return os.path.basename(path)
