module example.invalid/notes

go 1.19

require github.com/smm-h/stricttest/go v0.0.0

// In a project of your own: go get github.com/smm-h/stricttest/go
replace github.com/smm-h/stricttest/go => ../../../go
