"""Shared test configuration.

Hypothesis draws examples from the fixed seed that pyproject.toml gives pytest, `--hypothesis-seed`,
which it prints; `make soak` uses fresh seeds. A failing example becomes an `@example` of its test.
"""

from hypothesis import settings

# Durations of examples say nothing: other work may use the processor. A failure in one place must
# be reproducible everywhere: no examples are kept in files.
settings.register_profile("fixed", deadline=None, database=None, print_blob=True)
settings.load_profile("fixed")
