"""Be a tool as a fork of the server that listens at a socket: its name, the tool's, arguments.

It stands alone because it runs as a process of its own, with as little to import as can be.
"""

import array
import marshal
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_SEQPACKET, SOL_SOCKET, socket

if __name__ == "__main__":
    server = socket(AF_UNIX, SOCK_SEQPACKET)
    server.connect(f"\0{sys.argv[1]}")
    asked = {
        "name": sys.argv[2],
        "arguments": sys.argv[3:],
        "env": dict(os.environ),
        "cwd": os.getcwd(),  # noqa: PTH109
    }
    handles = array.array("i", [0, 1, 2])
    server.sendmsg([marshal.dumps(asked)], [(SOL_SOCKET, SCM_RIGHTS, handles)])
    for handle in handles:
        os.close(handle)
    os._exit(int(server.recv(8) or b"70"))
