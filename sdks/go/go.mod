module memoryd

go 1.24.0

require (
	github.com/go-json-experiment/json v0.0.0-20250517221953-25912455fbc8
	github.com/hashicorp/go-retryablehttp v0.7.7
	github.com/tmaxmax/go-sse v0.11.0
	golang.org/x/text v0.30.0
)

require (
	github.com/BurntSushi/toml v1.4.1-0.20240526193622-a339e1f7089c // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	golang.org/x/exp/typeparams v0.0.0-20231108232855-2478ac86f678 // indirect
	golang.org/x/mod v0.28.0 // indirect
	golang.org/x/sync v0.17.0 // indirect
	golang.org/x/tools v0.37.0 // indirect
	golang.org/x/tools/go/expect v0.1.1-deprecated // indirect
	honnef.co/go/tools v0.6.1 // indirect
)

tool honnef.co/go/tools/cmd/staticcheck
