// Starts Swagger UI on the contract this server serves; a file of its own, because the page allows no inline script.
"use strict";
window.ui = SwaggerUIBundle({
  url: "api/openapi.json",
  dom_id: "#interface",
  deepLinking: true,
  displayRequestDuration: true,
  validatorUrl: null, // no other host is asked
});
