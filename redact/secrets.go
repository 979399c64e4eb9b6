package redact

import "slices"

// secrets is the redactor of the kinds that are always on. Its detectors only read after this.
var secrets = build(slices.Concat(
	keyDetectors, []detector{jwtDetector}, urlDetectors, markDetectors, assignDetectors, formatDetectors(),
)...)
