"""Recipe of `linalg.json`: run with the Python of the peer environment (JAX 0.10.2).

    PYTHONPATH=. .venv-peers/bin/python tests/data/record_linalg.py > tests/data/linalg.json
"""

import json
import sys
import warnings

import jax

from tests.lax.linalg_cases import cases, summary

warnings.simplefilter("ignore")
json.dump({name: summary(call) for name, call in cases(jax)}, sys.stdout, indent=0)
