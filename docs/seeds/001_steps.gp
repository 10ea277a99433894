# gnuplot 001_steps.gp makes 001_steps.svg.
set encoding utf8
set terminal svg size 860,420 noenhanced font 'sans,11' background 'white'
set output '001_steps.svg'
set datafile missing '?'
set grid
set logscale y
set linetype 5 lc rgb 'dark-goldenrod'
set linetype 9 lc rgb 'gray40'
set style fill solid 0.8
set boxwidth 0.9
set xtics rotate by -25
set key outside right top
set title "The article's steps: AES-256 on 64 MiB"
set format y '%.0s %cB/s'
plot '001_steps.dat' using 2:xtic(1) with histogram lt 1 title "encryption", \
  '001_steps.dat' using 3:xtic(1) with histogram lt 2 title "encryption with copies", \
  '001_steps.dat' using 5:xtic(1) with histogram lt 3 title "decryption", \
  '001_steps.dat' using 6:xtic(1) with histogram lt 4 title "decryption with copies"
