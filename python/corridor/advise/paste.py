"""Configuration lines for a setting: for Contiki-NG, for Linux, and for Corridor's own plans.

The names come from the sources: Contiki-NG ``os/net/mac/csma/csma-output.c``,
``os/net/ipv6/uipopt.h``, ``os/net/routing/rpl-lite/rpl-conf.h``; for Linux ``ip-route(8)``,
``src/mac.c`` of wpan-tools 0.10, and ``Documentation/networking/ip-sysctl.rst``. Fields without a
counterpart are listed with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tomli_w

from corridor.advise.settings import FLOW_PATHS, PATHS, Setting

#: Minimum retransmission timeout of the paper, ms.
_RTO_MIN_MS = 500
#: macMinBE, macMaxBE and macMaxCSMABackoffs of exponential backoffs.
_EXPONENTS = (3, 5, 4)


@dataclass(frozen=True)
class Lines:
    """Lines to paste into one system, and the fields it has no counterpart for."""

    #: Where the lines go.
    where: str
    lines: tuple[str, ...]
    #: Fields without a counterpart, with the reason.
    absent: Mapping[str, str]

    def row(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"where": self.where, "lines": list(self.lines), "absent": dict(self.absent)}


def lines(setting: Setting, changes: Mapping[str, Any], payload_bytes: int) -> list[Lines]:
    """Return the lines to paste for the fields that change.

    Parameters
    ----------
    setting
        The new setting.
    changes
        Those of its fields that change.
    payload_bytes
        Payload bytes per packet: other systems count windows in bytes.
    """
    return [
        _contiki(setting, changes, payload_bytes),
        _linux(setting, changes, payload_bytes),
        _plan(setting, changes),
    ]


def _contiki(setting: Setting, changes: Mapping[str, Any], payload_bytes: int) -> Lines:
    found, absent = [], {}
    if "retries" in changes:
        found.append(f"#define CSMA_CONF_MAX_FRAME_RETRIES {setting.retries}")
    if "backoff" in changes:
        if setting.backoff == "exponential-paper":
            least, most, busy = _EXPONENTS
            found += [
                f"#define CSMA_CONF_MIN_BE {least}",
                f"#define CSMA_CONF_MAX_BE {most}",
                f"#define CSMA_CONF_MAX_BACKOFF {busy}",
            ]
        elif setting.backoff == "standard":
            absent["backoff"] = (
                "its CSMA takes a channel that is busy too often for a retry, as "
                "exponential-paper does, and does not give the frame up"
            )
        else:
            absent["backoff"] = "its CSMA has exponential windows alone"
    if "window" in changes:
        found.append(f"#define UIP_CONF_RECEIVE_WINDOW {setting.window * payload_bytes}")
        absent["window"] = (
            "as a sender uIP has one segment under way, whatever the window: the line is for what "
            "it receives"
        )
    if "rto" in changes:
        absent["rto"] = "uIP has its own estimator, compiled in"
    if "acks" in changes:
        absent["acks"] = "TCP acknowledges cumulatively; CoAP's confirmable messages one by one"
    if "metric" in changes:
        if setting.metric == "path-dr":
            found.append("#define RPL_CONF_OF_OCP RPL_OCP_MRHOF")
            absent["metric"] = (
                "MRHOF is the nearest: it adds ETX along the path, and does not multiply ratios"
            )
        else:
            absent["metric"] = "its objective functions weigh links by ETX, OF0 too"
    return Lines("Contiki-NG, project-conf.h", tuple(found), absent)


def _linux(setting: Setting, changes: Mapping[str, Any], payload_bytes: int) -> Lines:
    found, absent = [], {}
    if "retries" in changes:
        found.append(f"iwpan dev wpan0 set max_frame_retries {setting.retries}")
    if "backoff" in changes:
        least, most, busy = _EXPONENTS
        if setting.backoff == "tinyos-paper":
            absent["backoff"] = "its radios have exponential windows alone"
        else:
            found.append(f"iwpan dev wpan0 set backoff_exponents {least} {most}")
            found.append(f"iwpan dev wpan0 set max_csma_backoffs {busy}")
        if setting.backoff == "exponential-paper":
            absent["backoff"] = (
                "the radio gives a frame up that found the channel busy too often; greater "
                "max_csma_backoffs, 5 at most, come nearest"
            )
    options = []
    if "window" in changes:
        options.append(f"window {setting.window * payload_bytes}")
    if "rto" in changes:
        if setting.rto == "rfc6298":
            options.append(f"rto_min {_RTO_MIN_MS}ms")
        else:
            absent["rto"] = "its timeouts follow RFC 6298"
    if options:
        # The window is set at the receiver, whose window bounds the sender; rto_min at the sender.
        found.append(f"ip -6 route change PREFIX dev lowpan0 {' '.join(options)}")
    if "rto" in changes and setting.rto == "rfc6298":
        # A route's option precedes it; it applies to TCP over IPv6 too, despite its name.
        found.append("# or for all routes, from Linux 6.11 on:")
        found.append(f"sysctl -w net.ipv4.tcp_rto_min_us={1000 * _RTO_MIN_MS}")
    if "acks" in changes:
        absent["acks"] = "TCP acknowledges cumulatively"
    if "metric" in changes:
        absent["metric"] = "routes are found outside of the kernel"
    return Lines("Linux with an 802.15.4 radio", tuple(found), absent)


def _plan(setting: Setting, changes: Mapping[str, Any]) -> Lines:
    table: dict[str, Any] = {}
    for name in changes:
        path = PATHS.get(name) or f"flow.{FLOW_PATHS[name]}"
        *outer, key = path.split(".")
        place = table
        for part in outer:
            place = place.setdefault(part, {})
        place[key] = getattr(setting, name)
    return Lines("Corridor, a plan's tables", tuple(tomli_w.dumps(table).splitlines()), {})
