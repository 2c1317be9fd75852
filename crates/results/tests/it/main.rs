//! Campaigns from outside.

mod scaling;
