package sampling

import "stroppy/internal/setting"

// Settings are those of a workload that chooses accounts uniformly or by a Zipf
// distribution.
func Settings(zipfian *bool, exponent *float64) []setting.Setting {
	return []setting.Setting{
		setting.Switch(zipfian, "zipfian", "choose few accounts often instead of all alike"),
		Exponent(exponent, "how uneven --zipfian is", func() string {
			if *zipfian {
				return ""
			}
			return "zipfian is false, which chooses all accounts alike: give --zipfian"
		}),
	}
}

// Exponent is the setting of a Zipf distribution's exponent; idle is Setting.Idle.
func Exponent(to *float64, help string, idle func() string) setting.Setting {
	return setting.Real(to, "zipf-exponent", help).Between(0.01, 100).IdleIf(idle)
}
