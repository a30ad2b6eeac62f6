"""The one door to the disk: everything pubc writes goes through here.

A reader never sees half a result. A file is written beside its final name, flushed to
the disk and renamed; a folder gets its manifest (sizes and SHA-256 of every file) last
and is renamed as a whole. A killed run leaves the old result or none, plus a temporary
that the next write to the same place removes.
"""

from pubc.storage.atomic import append_line, atomic_file, atomic_folder, write_json
from pubc.storage.disk import discard
from pubc.storage.locks import lock
from pubc.storage.manifest import (
    MANIFEST,
    Fault,
    hash_file,
    read_json,
    read_manifest,
    seal,
    seal_file,
    verify,
)

__all__ = [
    "MANIFEST",
    "Fault",
    "append_line",
    "atomic_file",
    "atomic_folder",
    "discard",
    "hash_file",
    "lock",
    "read_json",
    "read_manifest",
    "seal",
    "seal_file",
    "verify",
    "write_json",
]
