package redact

import "slices"

// secretDetectors returns the detectors of the kinds that are always on.
func secretDetectors() []detector {
	return slices.Concat(keyDetectors, []detector{jwtDetector, jwkDetector}, urlDetectors, markDetectors, assignDetectors, formatDetectors())
}
