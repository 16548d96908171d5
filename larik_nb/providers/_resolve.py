"""From what a person writes to one model of one provider: "provider/model", a role, a provider, a model, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from larik_nb.config import ROLES, check_base_url
from larik_nb.errors import ConfigError
from larik_nb.providers import credentials
from larik_nb.providers._presets import Quirks, Route, names, presets, route

if TYPE_CHECKING:
    from larik_nb.config import Config

LONGEST_SHOWN = 60
LONGEST_SPEC = 300
LOCAL = "local"
MAIN = "main"
SEE_MODELS = "List: %larik models"
THREE_WAYS = (
    "No model is set up. One of these three is enough: "
    "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY (another provider's key works too); "
    "name a model of a server that runs here, such as %model ollama/NAME; "
    'or pip install "larik-nb[local]", then %larik local fetch, for a small model on this machine'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """One model of one provider.

    Attributes:
        model: Its id within the provider, as the provider spells it where the catalog knows.
        route: The provider, as it will be spoken to.
        source: Where the choice was found when the caller named no model: "environment ANTHROPIC_API_KEY", for people.
        role: The role that was asked for.
    """

    model: str
    route: Route
    source: str = ""
    role: str | None = None

    @property
    def provider(self) -> str:
        """The provider's name."""
        return self.route.name

    @property
    def spec(self) -> str:
        """The full name, "provider/model", which resolves to this again."""
        return f"{self.provider}/{self.model}"

    @property
    def wire(self) -> str:
        """The wire format."""
        return self.route.wire

    @property
    def base_url(self) -> str | None:
        """The provider's address; None in-process."""
        return self.route.base_url

    @property
    def quirks(self) -> Quirks:
        """How the host deviates from its wire format."""
        return self.route.quirks

    @property
    def headers(self) -> Mapping[str, str]:
        """The user's headers for this provider."""
        return self.route.settings.headers if self.route.settings else {}


def resolve(spec: str | None, config: Config, *, base_url: str | None = None) -> Resolved:
    """Return the model that `spec` means.

    Nothing at all means the model of the settings, else the first provider with a key, else what runs here.
    A role's name means its model; one that always exists and is not set means the main model. "head/rest" is a model of the provider `head` where there is one (the rest may hold slashes). A provider's name
    alone means its default model. A bare model id is looked up in the catalog, then in the naming conventions, then
    taken for the default provider's where that serves models of any name.

    Args:
        spec: What the person wrote; capitals make no difference before the slash.
        config: The settings.
        base_url: Address to use in place of the provider's; then an unknown name is a model of an OpenAI-compatible
            server there.

    Raises:
        ConfigError: Nothing is meant by it; the message names what is nearest.
    """
    if base_url is not None:
        base_url = check_base_url(base_url.strip(), key="base_url", source="the arguments")
    found = _found(_clean(spec), config, anywhere=base_url is not None)
    return replace(found, route=_moved(found.route, base_url))


def _clean(spec: str | None) -> str:
    text = (spec or "").strip()
    if len(text) > LONGEST_SPEC or not text.isprintable():
        raise ConfigError("that is no model's name", remedy=SEE_MODELS)
    if text.startswith(presets().key_prefixes):
        raise ConfigError("that looks like an API key, not a model", remedy="Put keys into the environment")
    return text


def _found(spec: str, config: Config, *, anywhere: bool) -> Resolved:
    if spec and not anywhere and (role := _role(spec.lower(), config)):
        return role
    if spec:
        return _named(spec, config) or (_elsewhere(spec, config) if anywhere else _guess(spec, config))
    if config.model:
        return _configured(config)
    chosen = next((found for choose in _UNNAMED if (found := choose(config))), None)
    if chosen is None:
        raise ConfigError(THREE_WAYS)
    return chosen


def _configured(config: Config) -> Resolved:
    name = (config.model or "").strip().lower()
    if name == MAIN or (name in ROLES and name not in config.roles):
        remedy = "Name a model there: provider/model"
        raise ConfigError(
            f"the role {name} stands for the main model itself", source=config.model_source, remedy=remedy
        )
    try:
        return replace(_found(_clean(config.model), config, anywhere=False), source=config.model_source)
    except ConfigError as exc:
        raise ConfigError(exc.message, source=config.model_source) from exc


def _role(name: str, config: Config) -> Resolved | None:
    """Return the model of a role; None when there is no such role."""
    if name in config.roles and name != MAIN:
        return _of_role(name, config.roles[name], f"roles.{name} in {config.origin(f'roles.{name}')}", config)
    if name in presets().roles:
        return _of_role(name, presets().roles[name], f"the role {name}", config)
    return replace(_found("", config, anywhere=False), role=name) if name in ROLES else None


def _of_role(name: str, spec: str, source: str, config: Config) -> Resolved:
    spec = _clean(spec)
    try:
        found = _named(spec, config) or _guess(spec, config)
    except ConfigError as exc:
        raise ConfigError(exc.message, source=source) from exc
    return replace(found, source=source, role=name)


def _named(spec: str, config: Config) -> Resolved | None:
    """Return the model whose provider is said, by "head/rest" or by its own name; None when no provider is."""
    head, _, rest = spec.partition("/")
    here = route(head, config) if head.strip() else None
    if here is None:
        return None
    return Resolved(model=_spelled(rest.strip(), here, config) or _default(here, config), route=here)


def _spelled(model: str, here: Route, config: Config) -> str:
    entry = config.catalog.find(here.name, model)
    return entry.id if entry and entry.id.lower() == model.lower() else model


def _default(here: Route, config: Config) -> str:
    model = here.default_model or (_local_model(config) if here.name == LOCAL else None)
    if model is None:
        raise ConfigError(f"{here.name} has no default model", remedy=f"Name one: {here.name}/MODEL")
    return model


def _guess(spec: str, config: Config) -> Resolved:
    """Return the model that a bare id means, or raise with what is nearest."""
    return _sold(spec, config) or _conventional(spec, config) or _default_providers(spec, config) or _fail(spec, config)


def _sold(spec: str, config: Config) -> Resolved | None:
    sellers = [(entry, here) for entry in config.catalog.sellers(spec) if (here := route(entry.provider, config))]
    if not sellers:
        return None
    entry, here = next((pair for pair in sellers if _has_key(pair[1], config)), sellers[0])
    dated = spec.lower() != entry.id.lower()
    return Resolved(model=spec if dated else entry.id, route=here)


def _conventional(spec: str, config: Config) -> Resolved | None:
    if "/" in spec or " " in spec:
        return None
    matches = (owner for pattern, owner in presets().conventions if fnmatchcase(spec.lower(), pattern))
    owner = next(matches, None)
    here = route(owner, config) if owner else None
    return Resolved(model=spec, route=here) if here else None


def _default_providers(spec: str, config: Config) -> Resolved | None:
    """Return the id as a model of the default provider, if that serves any name and the id is no slip of the pen."""
    here = _default_route(config)
    if here is None or not here.open or "/" in spec or " " in spec:
        return None
    if _slip(spec, config) or _misspelt(spec, (*names(config), *presets().aliases)) or config.catalog.having(spec):
        return None
    return Resolved(model=spec, route=here)


def _default_route(config: Config) -> Route | None:
    head, slash, _ = (config.model or "").partition("/")
    if slash and (here := route(head, config)):
        return here
    return next(_keyed(config), None)


def _slip(spec: str, config: Config) -> bool:
    from difflib import get_close_matches

    forms = (form for model in config.catalog.models for form in (model.spec, model.id.lower()))
    return bool(get_close_matches(spec.lower(), forms, n=1, cutoff=0.8))


def _misspelt(word: str, known: Iterable[str]) -> bool:
    """Return whether a word is one of `known` but for a letter or two, or with its letters in another order."""
    from difflib import get_close_matches

    word = word.lower()
    return bool(get_close_matches(word, known, n=1, cutoff=0.87)) or sorted(word) in map(sorted, known)


def _elsewhere(spec: str, config: Config) -> Resolved:
    known = _sold(spec, config) or _conventional(spec, config)
    server = route("openai-compatible", config)
    if known or server is None:
        return known or _fail(spec, config)
    return Resolved(model=spec, route=server)


def _moved(here: Route, base_url: str | None) -> Route:
    if base_url is not None and not here.in_process:
        return replace(here, base_url=base_url, own_address=True, key_optional=True)
    if here.base_url is None and not here.in_process:
        key = f"providers.{here.name}.base_url"
        raise ConfigError(f"{here.name} needs an address", key=key, remedy="Set it there, or pass base_url")
    return here


def _fail(spec: str, config: Config) -> Resolved:
    near = [
        *_near_roles(spec, config),
        *_near_providers(spec, config),
        *config.catalog.having(spec),
        *config.catalog.nearest(spec),
    ]
    close = list(dict.fromkeys(near))[:3]
    hint = f"Closest: {', '.join(close)}. " if close else "Write it as provider/model. "
    shown = spec if len(spec) <= LONGEST_SHOWN else spec[:LONGEST_SHOWN] + "…"
    raise ConfigError(f'unknown model "{shown}"', remedy=hint + SEE_MODELS)


def role_names(config: Config) -> tuple[str, ...]:
    """Return every role: those that always exist, the user's own, then those that stand for a model by themselves."""
    return tuple(dict.fromkeys([*ROLES, *config.roles, *presets().roles]))


def _near_roles(spec: str, config: Config) -> list[str]:
    from difflib import get_close_matches

    return get_close_matches(spec.lower(), role_names(config), n=1, cutoff=0.75)


def _near_providers(spec: str, config: Config) -> Iterator[str]:
    from difflib import get_close_matches

    head, slash, rest = spec.partition("/")
    for name in get_close_matches(head.lower(), names(config), n=2, cutoff=0.65):
        yield f"{name}{slash}{rest}"


def configured(config: Config) -> Resolved | None:
    """Return the model that the settings name, or the first key's; None where only a look around would tell.

    No server is looked for, no keyring asked, no file of a model wanted.

    Raises:
        ConfigError: The settings name no model that there is.
    """
    return _configured(config) if config.model else _first_key(config)


# -- when no model is named -----------------------------------------------------------------------------------------


def _keyed(config: Config) -> Iterator[Route]:
    """Yield the providers that would answer now, first choice first: those with a key, in the order set.

    One that needs no key counts only where the user put it into the order themselves.
    """
    chosen = config.provider_order or ()
    for name in dict.fromkeys([*(chosen or presets().order), *names(config)]):
        here = route(name, config)
        if here is None:
            raise _unknown_in_order(name, config)
        if _has_key(here, config) or (here.key_optional and name in chosen):
            yield here


def _unknown_in_order(name: str, config: Config) -> ConfigError:
    close = next(_near_providers(name, config), None)
    remedy = f"Did you mean {close}?" if close else ""
    return ConfigError(f"no provider is called {name}", key="provider_order", source=config.source, remedy=remedy)


def _has_key(here: Route, config: Config) -> bool:
    return bool(credentials.find(here, config))


def _first_key(config: Config) -> Resolved | None:
    return next((_by_key(here, here.default_model, config) for here in _keyed(config) if here.default_model), None)


def _by_key(here: Route, model: str, config: Config) -> Resolved:
    return Resolved(model=model, route=here, source=credentials.find(here, config).source)


def _first_stored(config: Config) -> Resolved | None:
    """Return the model of the first provider whose key lies in the keyring; only the likely ones are looked up."""
    routes = (route(name, config) for name in config.provider_order or presets().order)
    for here in routes:
        if here is not None and here.default_model and (found := credentials.stored(here)):
            return Resolved(model=here.default_model, route=here, source=found.source)
    return None


def _running(config: Config) -> Resolved | None:
    """Return a model of a server that runs on this machine."""
    from larik_nb.providers import _probe

    found = _probe.running(config)
    return Resolved(model=found[1], route=found[0], source=f"{found[0].name} runs here") if found else None


def _embedded(config: Config) -> Resolved | None:
    from importlib.util import find_spec

    here = route(LOCAL, config)
    if here is None or find_spec("xllamacpp") is None or not _local_is_here(config):
        return None
    return Resolved(model=_local_model(config), route=here, source="the model on this machine")


def _local_is_here(config: Config) -> bool:
    from larik_nb.providers.local import cache, table

    return config.local.model_path is not None or cache.best_present(table.models()) is not None


def _local_model(config: Config) -> str:
    from larik_nb.providers.local import cache, table

    if config.local.model:
        return config.local.model
    known = table.models()
    return (cache.best_present(known) or known[-1]).name


_UNNAMED: tuple[Callable[[Config], Resolved | None], ...] = (_first_key, _first_stored, _running, _embedded)
"""What answers when no model is named, in order; a server is looked for on this machine only."""
