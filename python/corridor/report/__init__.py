"""The site: everything published and what we found, explanations, tutorials, reference.

`corridor.report.site` builds it from a checkout: pages of ``docs``, recorded results of
``experiments``, and recorded measurements; `corridor.report.links` checks the built site.
"""
