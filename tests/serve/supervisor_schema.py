"""What the Supervisor accepts in an app's files, written down from its documentation.

https://developers.home-assistant.io/docs/apps/configuration and /docs/apps/repository, with the
words that the Supervisor's own validation takes, both as of August 2026. It leaves out keys that it
does not know without a word. `legacy` and `advanced` are not here on purpose: they are for old
apps.
"""

import re
from collections.abc import Callable
from typing import Any

ARCHITECTURES = {"amd64", "aarch64"}
MAPS = {
    *("data", "ssl", "addons", "local_apps", "backup", "share", "media", "homeassistant_config"),
    *("all_addon_configs", "all_app_configs", "addon_config", "app_config"),
}
# Of an option: a type, with bounds or a pattern, and a question mark where it may be left out.
ELEMENT = re.compile(
    r"(bool|email|url|port|password(\(\d*,\d*\))?|str(\(\d*,\d*\))?|int(\(-?\d*,-?\d*\))?"
    r"|float(\(-?[\d.]*,-?[\d.]*\))?|match\(.*\)|list\(.+\)|device(\(subsystem=[a-z]+\))?)\??"
)

# Rights that an app may ask for.
PRIVILEGES = {
    *("BPF", "CHECKPOINT_RESTORE", "DAC_READ_SEARCH", "IPC_LOCK", "NET_ADMIN", "NET_RAW"),
    *("PERFMON", "SYS_ADMIN", "SYS_MODULE", "SYS_NICE", "SYS_PTRACE", "SYS_RAWIO"),
    *("SYS_RESOURCE", "SYS_TIME"),
}
# What an app switches on or off, and tapword does not need.
FLAGS = (
    *("host_network", "host_pid", "host_ipc", "host_uts", "host_dbus", "udev", "tmpfs", "audio"),
    *("full_access", "video", "gpio", "usb", "uart", "devicetree", "kernel_modules", "realtime"),
    *("docker_api", "auth_api", "journald"),
)

Rule = Callable[[Any], bool]


def is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def matches(pattern: str) -> Rule:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def list_of(rule: Rule) -> Rule:
    return lambda value: isinstance(value, list) and all(map(rule, value))


def is_port(value: Any) -> bool:
    return type(value) is int and 0 <= value <= 65535


def is_map(value: Any) -> bool:
    if isinstance(value, str):
        name, _, rights = value.partition(":")
        return name in MAPS and rights in ("", "ro", "rw")
    return (
        isinstance(value, dict)
        and value.get("type") in MAPS
        and value.keys() <= {"type", "read_only", "path"}
        and isinstance(value.get("read_only", True), bool)
    )


def is_ports(value: Any) -> bool:
    return isinstance(value, dict) and all(
        re.fullmatch(r"\d+(/(tcp|udp))?", name) and (port is None or is_port(port))
        for name, port in value.items()
    )


def is_limit(value: Any) -> bool:
    if isinstance(value, dict):
        return value.keys() == {"soft", "hard"} and all(map(is_limit, value.values()))
    return type(value) is int


def is_dictionary_of(rule: Rule) -> Rule:
    return lambda value: (
        isinstance(value, dict) and all(map(is_text, value)) and all(map(rule, value.values()))
    )


def is_translation(value: Any) -> bool:
    """Whether an option is translated: its name, a description, and the same of its fields."""
    return (
        isinstance(value, dict)
        and is_text(value.get("name"))
        and value.keys() <= {"name", "description", "fields"}
        and is_text(value.get("description", "none"))
        and is_dictionary_of(is_translation)(value.get("fields", {}))
    )


def is_element(value: Any) -> bool:
    """Whether an option's schema is one: a list holds no list directly."""
    if isinstance(value, str):
        return ELEMENT.fullmatch(value) is not None
    if isinstance(value, list):
        return len(value) == 1 and not isinstance(value[0], list) and is_element(value[0])
    return isinstance(value, dict) and all(map(is_element, value.values()))


REQUIRED: dict[str, Rule] = {
    "name": is_text,
    "version": is_text,
    "slug": matches(r"[-_.A-Za-z0-9]+"),
    "description": is_text,
    "arch": list_of(lambda value: value in ARCHITECTURES),
}
OPTIONAL: dict[str, Rule] = {
    "url": matches(r"https?://\S+"),
    "machine": list_of(matches(r"!?[a-z0-9-]+")),
    "devices": list_of(is_text),
    "privileged": list_of(lambda value: value in PRIVILEGES),
    "apparmor": lambda value: is_flag(value) or is_text(value),
    "hassio_role": matches("default|homeassistant|backup|manager|admin"),
    "breaking_versions": list_of(is_text),
    "ulimits": is_dictionary_of(is_limit),
    **dict.fromkeys(FLAGS, is_flag),
    "image": matches(r"([a-zA-Z\-.:\d{}]+/)*([-\w{}]+)/([-\w{}]+)"),
    "startup": matches("initialize|system|services|application|once"),
    "boot": matches("auto|manual|manual_only"),
    "init": is_flag,
    "stage": matches("stable|experimental|deprecated"),
    "ports": is_ports,
    "ports_description": is_dictionary_of(is_text),
    "watchdog": matches(r"(https?|\[PROTO:\w+\]|tcp)://\[HOST\]:(\[PORT:\d+\]|\d+).*"),
    "webui": matches(r"(https?|\[PROTO:\w+\])://\[HOST\]:\[PORT:\d+\].*"),
    "ingress": is_flag,
    "ingress_port": is_port,
    "ingress_entry": is_text,
    "ingress_stream": is_flag,
    "panel_icon": matches(r"mdi:[a-z0-9-]+"),
    "panel_title": is_text,
    "panel_admin": is_flag,
    "homeassistant": is_text,
    "map": list_of(is_map),
    "environment": is_dictionary_of(lambda value: isinstance(value, str)),
    "hassio_api": is_flag,
    "homeassistant_api": is_flag,
    "stdin": is_flag,
    "services": list_of(matches("(mqtt|mysql):(provide|want|need)")),
    "discovery": list_of(is_text),
    "backup": matches("hot|cold"),
    "backup_exclude": list_of(is_text),
    "backup_pre": is_text,
    "backup_post": is_text,
    "options": lambda value: isinstance(value, dict),
    "schema": lambda value: value is False or (isinstance(value, dict) and is_element(value)),
    "timeout": lambda value: type(value) is int and 10 <= value <= 300,
}
TRANSLATIONS: dict[str, Rule] = {
    "configuration": is_dictionary_of(is_translation),
    "network": is_dictionary_of(is_text),
}
REPOSITORY: dict[str, Rule] = {"name": is_text}
REPOSITORY_OPTIONAL: dict[str, Rule] = {"url": matches(r"https?://\S+"), "maintainer": is_text}


def problems(
    config: dict[str, Any], required: dict[str, Rule], optional: dict[str, Rule]
) -> list[str]:
    """List what the Supervisor would refuse, or not know."""
    known = required | optional
    found = [f"{key} is missing" for key in required if key not in config]
    found += [f"{key} is unknown" for key in config if key not in known]
    return found + [
        f"{key} is {value!r}"
        for key, value in config.items()
        if key in known and not known[key](value)
    ]
