// Package openapi completes the OpenAPI document that huma makes of the operations, and serves it as versions 3.1 and 3.0.
//
// Start with document.go (Complete); handlers.go has the forms that are served.
package openapi
