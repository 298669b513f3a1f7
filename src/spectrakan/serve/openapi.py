"""The OpenAPI document of the API."""

from __future__ import annotations

from typing import Any

from spectrakan.serve.guard import MOST_BYTES
from spectrakan.serve.predict import MOST_NUMBERS, NPZ, SECONDS
from spectrakan.serve.scenes import SIZES

_ERROR = {
    "description": "refused; the reason in words",
    "content": {
        "application/json": {
            "schema": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
        }
    },
}
_REASONS = {
    "400": "the body is not what its type says",
    "403": "a page of another site asked",
    "404": "no model, run or sample of that name",
    "408": "the body took too long",
    "413": f"more than {MOST_BYTES} bytes or {MOST_NUMBERS} numbers",
    "415": "another content type",
    "421": "another host",
    "422": "the numbers do not fit the model",
    "503": f"too busy, or longer than {SECONDS:g} s",
}
_RAW = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_NPZ = {NPZ: {"schema": {"type": "string", "format": "binary"}}}
_NUMBERS = {"type": "array", "items": {}, "description": "nested lists (batch, history, *space, field)"}


def _errors(*codes: str) -> dict[str, Any]:
    return {code: {**_ERROR, "description": _REASONS[code]} for code in (*codes, "403", "421")}


def _query(name: str, schema: dict[str, Any], text: str, place: str = "query") -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": schema, "description": text}


def _json(text: str) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": {"type": "object"}}}}


def openapi_document(version: str) -> dict[str, Any]:
    """OpenAPI 3.1, written by hand: every path, its limits and its errors."""
    predict = {
        "summary": "Predict frames with a model",
        "parameters": [_query("model", {"type": "string"}, "name of the model, for npz")],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["model", "inputs"],
                        "additionalProperties": False,
                        "properties": {
                            "model": {"type": "string"},
                            "inputs": _NUMBERS,
                            "params": {**_NUMBERS, "description": "(batch, parameter)"},
                            "horizon": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 1},
                        },
                    }
                },
                **_NPZ,
            },
        },
        "responses": {
            "200": {**_json("values (batch, horizon, *space, field); npz where it is accepted"), "content": {
                "application/json": {"schema": {"type": "object"}}, **_NPZ}},
            **_errors("400", "404", "408", "413", "415", "422", "503"),
        },
    }  # fmt: skip
    compare = {
        "summary": "Solver and model from the same state, float32 in and out, times in Server-Timing",
        "parameters": [
            _query("model", {"type": "string"}, "name of a model of droplet2d, darcy2d or cns1d"),
            _query("cells", {"type": "integer", "enum": list(SIZES)}, "cells along an axis"),
        ],
        "requestBody": {"required": True, "content": _RAW},
        "responses": {
            "200": {"description": "solver, model, attention", "content": _RAW},
            **_errors("400", "404", "408", "413", "422", "503"),
        },
    }
    run = _query("name", {"type": "string"}, "name of a run", "path")
    index = _query("index", {"type": "integer", "minimum": 0}, "number of a sample", "path")
    paths: dict[str, Any] = {
        "/healthz": {"get": {"summary": "Whether the server answers", "responses": {"200": _json("ok")}}},
        "/api/v1/models": {"get": {"summary": "Models and runs", "responses": {"200": _json("by name")}}},
        "/api/v1/predict": {"post": predict},
        "/api/v1/compare": {"post": compare},
        "/api/v1/runs/{name}/samples/{index}": {
            "get": {
                "summary": "Input, truth, prediction and attention of a sample as float32, shapes in X-Shapes",
                "parameters": [run, index],
                "responses": {"200": {"description": "arrays", "content": _RAW}, **_errors("404", "503")},
            }
        },
        "/api/v1/runs/{name}/inside": {
            "get": {
                "summary": "KAN curves and gates",
                "parameters": [run],
                "responses": {"200": _json("curves"), **_errors("404", "503")},
            }
        },
    }
    return {"openapi": "3.1.0", "info": {"title": "spectrakan", "version": version}, "paths": paths}
