// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// HookRuleWindow is a period that recurs, such as four hours of each Saturday night.
type HookRuleWindow struct {
	// cron says when the window opens, in the five fields of cron: minute, hour, day of the month, month and day of the
	// week, as in 0 2 * * 6. Names such as @daily and time zones are not accepted.
	//
	// Days of the week are 0 to 7, where 0 and 7 are Sunday, or sun to sat. When clocks are put forward, a window whose
	// time is skipped opens right after the change. When clocks are put back, a window whose time comes twice opens the
	// first time, and both times if it opens in every hour of the day.
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=256
	// +required
	Cron string `json:"cron,omitempty"`

	// duration is how long the window stays open, such as 4h or 1h30m: from one minute to 744 hours. It is elapsed time,
	// even if clocks are changed meanwhile.
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+[hms])+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('744h')",message="must be between 1m and 744h"
	// +required
	Duration string `json:"duration,omitempty"`

	// timeZone is the name of the time zone of cron in the IANA Time Zone Database, such as Europe/Berlin. The default is
	// UTC.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.lowerAscii() != 'local'",message="must be the name of a time zone"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}
