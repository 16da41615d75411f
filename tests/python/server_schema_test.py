"""Requests made from the published /openapi.json: server_schema_test.py PROGRAM SOURCE_FOLDER [unittest arguments].

Whatever the document allows, and some of what it does not, gets a 2xx or a 4xx in the shape that it says."""
import sys
import time
import unittest
from pathlib import Path

import hypothesis
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (content_type_conformance, response_schema_conformance,
                                               status_code_conformance)

from server_process import ServerProcess

PROGRAM, SOURCE = (Path(p).resolve() for p in sys.argv[1:3])
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
GENERATING = {"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"}
LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
EXAMPLES = 30  # an operation and a mode
SECONDS = 60   # for all of them; what is left then is not tried


class PublishedSchema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ServerProcess(PROGRAM, SOURCE / "models" / "tiny", "--served-model-name", "tiny")
        cls.addClassCleanup(cls.server.kill)
        cls.schema = schemathesis.openapi.from_url(f"{cls.server.url}/openapi.json")
        cls.deadline = time.monotonic() + SECONDS

    def try_operation(self, operation, mode):
        """Many requests of one operation; how many had a body that was accepted."""
        settings = hypothesis.settings(max_examples=EXAMPLES, deadline=None, database=None, print_blob=False,
                                       suppress_health_check=list(hypothesis.HealthCheck),
                                       phases=[hypothesis.Phase.generate])

        @hypothesis.seed(1)
        @settings
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
        def run(case):
            if time.monotonic() > self.deadline:
                return
            if isinstance(case.body, dict):
                self.keep_short(operation.path, case.body)
            if "id" in (case.path_parameters or {}) and len(self.statuses) % 2 == 1:
                case.path_parameters["id"] = "tiny"
            response = case.call(timeout=60)
            self.statuses.append(response.status_code)
            case.validate_response(response, checks=CHECKS)

        self.statuses = []
        run()

    @staticmethod
    def keep_short(path, body):
        """Most names of models would be a 404, and long replies take long."""
        if isinstance(body.get("model"), str):
            body["model"] = "tiny"
        if path in GENERATING:
            for key in LENGTHS:
                if isinstance(body.get(key), (int, float)) and not isinstance(body.get(key), bool):
                    body[key] = min(body[key], 4)
            if not any(key in body for key in LENGTHS):
                body["max_output_tokens" if path == "/v1/responses" else "max_tokens"] = 4
        if isinstance(body.get("n"), (int, float)):
            body["n"] = min(body["n"], 4)

    def test_answers_are_as_documented(self):
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            for result in self.schema.get_all_operations():
                operation = result.ok()
                if mode is schemathesis.GenerationMode.NEGATIVE and operation.method == "get":
                    continue
                with self.subTest(mode=mode.value, operation=operation.label):
                    self.try_operation(operation, mode)
                    if mode is schemathesis.GenerationMode.POSITIVE:
                        self.assertIn(200, self.statuses)

    def test_every_path_of_the_document_is_there(self):
        for result in self.schema.get_all_operations():
            operation = result.ok()
            with self.subTest(operation.label):
                body = {"body": {}, "media_type": "application/json"} if operation.method == "post" else {}
                response = operation.Case(path_parameters={"id": "tiny"}, **body).call(timeout=60)
                self.assertNotIn(response.status_code, (404, 405))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
