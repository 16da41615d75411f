"""A way to a server on which a test can slow the streams down, or cut everything."""
import select
import socket
import threading
import time


class SlowProxy:
    """Passes connections on to a local port. `rate`: bytes a second of each event stream, None for all at once."""

    def __init__(self, port):
        self.target = port
        self.rate = None
        self.open = True  # False: connections are closed and refused
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.open:
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()
            else:
                client.close()

    def _pass(self, client):
        streaming = False
        with client, socket.create_connection(("127.0.0.1", self.target)) as server:
            try:
                while self.open:
                    for source in select.select([client, server], [], [], 0.02)[0]:
                        data = source.recv(65536)
                        if not data:
                            return
                        if source is client:
                            streaming = False  # the next request of this connection
                            server.sendall(data)
                        else:
                            streaming = streaming or b"text/event-stream" in data
                            self._send(client, data, streaming)
            except OSError:
                return

    def _send(self, client, data, streaming):
        while data and self.open:
            rate = self.rate if streaming else None
            size = max(1, rate // 50) if rate else len(data)
            client.sendall(data[:size])
            data = data[size:]
            if rate:
                time.sleep(size / rate)

    def close(self):
        self.open = False
        self.listener.close()
