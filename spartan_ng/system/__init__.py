"""What only Linux has, and what is done where it is missing: nobody else asks the system for any of it.

The package runs its clusters on Linux. In one process it works wherever Python and its libraries do, without
what is here: what is not known is guessed with care, and what cannot be had is done by other means, or raises
`OptionError` where only a cluster needs it. A file holds what belongs together.

| file | what |
|---|---|
| `library.py` | functions of the C library |
| `machine.py` | processors and memory |
| `heap.py` | memory that is free, and kept by the allocator |
| `mapping.py`, `faults.py` | files and addresses as arrays; files that become shorter while they are read |
| `segments.py` | memory that processes share |
| `files.py` | room on the disk, names that are swapped, locks |
| `users.py`, `ownership.py` | who this process belongs to; whose a file is |
| `object_files.py` | machine code that is put into memory |
| `sockets.py`, `bell.py` | connections between processes; a loop that is woken |
| `spinning.py` | how long threads of BLAS hold a processor |
| `processes.py`, `zygote.py` | how processes begin and end, and what they may have |
"""
