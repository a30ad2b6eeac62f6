"""The one door to the disk: everything pubc writes goes through here.

A reader never sees half a result. A file is written beside its final name, flushed to
the disk and renamed; a folder gets its manifest (sizes and SHA-256 of every file) last
and is renamed as a whole. A killed run leaves the old result or none, plus a temporary
that the next write to the same place removes.
"""

from pubc.storage.atomic import (
    append_lines,
    atomic_file,
    atomic_folder,
    check_lines,
    page_bytes,
    write_json,
    write_marked,
)
from pubc.storage.cache_entries import ENTRY, entry_files, mark_entry, remove_entry
from pubc.storage.disk import utf8_name
from pubc.storage.files_with_manifest import renew_files, sealed_file
from pubc.storage.json_documents import check_settings, parse_json, read_json
from pubc.storage.locks import lock, unlock_dead
from pubc.storage.manifest import (
    MANIFEST,
    Fault,
    agrees,
    content_of,
    file_entry,
    fits,
    hash_file,
    read_manifest,
    read_sealed,
    seal,
    seal_file,
    verify,
    write_sealed,
)
from pubc.storage.ownership import Draft, claim, mark, strangers
from pubc.storage.scratch import make_scratch, reserve_scratch, scratch
from pubc.storage.successors import (
    final_name,
    has_replaced,
    replaced_mark,
    retire,
    said_to_replace,
    successor,
    take_place,
)
from pubc.storage.targets import check_apart, check_target, lies_in
from pubc.storage.work_folders import WorkFolder

__all__ = [
    "ENTRY",
    "MANIFEST",
    "Draft",
    "Fault",
    "WorkFolder",
    "agrees",
    "append_lines",
    "atomic_file",
    "atomic_folder",
    "check_apart",
    "check_lines",
    "check_settings",
    "check_target",
    "claim",
    "content_of",
    "entry_files",
    "file_entry",
    "final_name",
    "fits",
    "has_replaced",
    "hash_file",
    "lies_in",
    "lock",
    "make_scratch",
    "mark",
    "mark_entry",
    "page_bytes",
    "parse_json",
    "read_json",
    "read_manifest",
    "read_sealed",
    "remove_entry",
    "renew_files",
    "replaced_mark",
    "reserve_scratch",
    "retire",
    "said_to_replace",
    "scratch",
    "seal",
    "seal_file",
    "sealed_file",
    "strangers",
    "successor",
    "take_place",
    "unlock_dead",
    "utf8_name",
    "verify",
    "write_json",
    "write_marked",
    "write_sealed",
]
