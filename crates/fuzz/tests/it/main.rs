//! The fuzz targets on the corpus, and on random input.

mod corpus;
mod random;
