"""Everything that we take of Connexion, so that a new version of it is this file's matter."""

from connexion import ConnexionMiddleware as ConnexionMiddleware
from connexion.http_facts import METHODS as METHODS
from connexion.json_schema import Draft4RequestValidator as Draft4RequestValidator
from connexion.middleware.abstract import ROUTING_CONTEXT as ROUTING_CONTEXT
from connexion.middleware.abstract import RoutedAPI as RoutedAPI
from connexion.middleware.abstract import RoutedMiddleware as RoutedMiddleware
from connexion.middleware.lifespan import LifespanMiddleware as LifespanMiddleware
from connexion.middleware.main import API
from connexion.middleware.response_validation import ResponseValidationMiddleware as ResponseValidationMiddleware
from connexion.middleware.routing import RoutingMiddleware as RoutingMiddleware
from connexion.operations import AbstractOperation as AbstractOperation
from connexion.resolver import Resolver as Resolver
from connexion.spec import OpenAPISpecification as OpenAPISpecification
from connexion.spec import Specification as Specification

ConnexionApi = API
