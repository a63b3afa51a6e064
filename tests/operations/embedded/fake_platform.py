"""`up` with fakes: a web server of ten lines, a worker that sleeps, a setup that counts."""

import http.server
import json
import os
import sys
import time
from pathlib import Path

import psycopg

from common.machine.errors import StartError
from operations.embedded import up
from operations.embedded.platform_processes import Recipe, Server
from operations.embedded.supervisor import RestartPolicy


def remember_pid(name: str) -> None:
    """Write the process id for the test."""
    Path(os.environ["ZDATA_DIR"], f"{name}.pid").write_text(str(os.getpid()))


class Answer(http.server.BaseHTTPRequestHandler):
    """Answers 200 to every request."""

    def do_GET(self) -> None:
        """Answer 200."""
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Stay quiet."""


def web() -> None:
    """Serve for ever."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer)
    remember_pid("web")
    server.serve_forever()


def worker() -> None:
    """Sleep for ever, if the database is there at the start."""
    psycopg.connect(os.environ["DATABASE_URL"]).close()
    remember_pid("worker")
    while True:
        time.sleep(60)


def setup() -> None:
    """Count the starts in the database."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS starts (at timestamptz DEFAULT now())")
        connection.execute("INSERT INTO starts DEFAULT VALUES")
        row = connection.execute("SELECT count(*) FROM starts").fetchone()
    sys.stdout.write(json.dumps({"org_id": 7, "dev_token": f"zonal_dev_{row and row[0]}"}) + "\n")


def main() -> int:
    """Run the part that the argument names; all of them without one."""
    if len(sys.argv) > 1:
        {"web": web, "worker": worker, "setup": setup}[sys.argv[1]]()
        return 0
    port = int(os.environ["PORT"])
    this = (sys.executable, __file__)
    recipe = Recipe(
        bootstrap=(*this, "setup"),
        web=Server(
            name="web",
            command=(*this, "web"),
            port=port,
            ready_path="/readyz",
            needs=("control",),
        ),
        worker=Server(name="worker", command=(*this, "worker"), needs=("control",)),
        pages=(("API", "/v1/"),),
    )
    try:
        return up.run(os.environ, recipe, restart_policy=RestartPolicy(first_delay_s=0.1))
    except StartError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
