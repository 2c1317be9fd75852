"""What all tests share.

Examples are drawn from the fixed seed that pyproject.toml gives pytest, `--hypothesis-seed`, which
it prints; `make soak` gives fresh ones. An example that fails becomes an `@example` of its test.
"""

from hypothesis import settings

# How long an example takes says nothing: other work may have the processor. What failed in one
# place is to fail everywhere: no examples are kept in files.
settings.register_profile("fixed", deadline=None, database=None, print_blob=True)
settings.load_profile("fixed")
