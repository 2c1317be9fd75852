"""The figures of constrained-defaults-2012 (BETZLER): a mesh of constrained nodes."""
