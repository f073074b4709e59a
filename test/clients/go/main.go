// Program clients tests pgx and GORM: clients URL PART,
// where PART is driver or mapper.
package main

import "os"

func main() {
	url := os.Args[1]
	if os.Args[2] == "driver" {
		driver(url)
	} else {
		orm(url)
	}
	finish()
}
