// Package foreign tests the command runteam against servers that other projects
// wrote. It is a module of its own, so that runteam does not depend on them. `make
// foreign` in the folder above installs the servers and runs the tests.
package foreign
