// Package foreign tests runteam against programs that other projects wrote: model
// servers, MCP servers and a client. It is a module of its own, so that runteam does not
// depend on them. `make foreign` in the folder above installs them and runs the tests.
package foreign
