//go:build tools

package tools

import (
	_ "github.com/bojand/ghz/cmd/ghz"
	_ "github.com/fullstorydev/grpcurl/cmd/grpcurl"
)
