"""What all tests share."""

from hypothesis import settings

# How long an example takes says nothing: other work may have the processor.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
