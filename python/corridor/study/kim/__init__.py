"""M. Kim et al., "Modeling Network Coded TCP: Analysis of Throughput and Energy Cost" (2012)."""
