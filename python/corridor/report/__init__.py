"""The site: all that was published and what came of it, explanations, tutorials, reference.

`corridor.report.site` puts it together from a checkout: pages of ``docs``, recorded results of
``experiments``, recorded measurements; `corridor.report.links` checks what came of it.
"""
