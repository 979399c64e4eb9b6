// Package browser tests the page of the inspector as a person uses it: its tests start `runteam serve`
// and drive it with the Chromium of this computer.
package browser
