//! Integration tests of campaigns.

mod scaling;
