# gnuplot 002_table_2.gp makes 002_table_2.svg.
set encoding utf8
set terminal svg size 860,420 noenhanced font 'sans,11' background 'white'
set output '002_table_2.svg'
set datafile missing '?'
set grid
set logscale y
set linetype 5 lc rgb 'dark-goldenrod'
set linetype 9 lc rgb 'gray40'
set style fill solid 0.8
set boxwidth 0.9
set xtics rotate by -25
set key outside right top
set title "Table 2: AES-CTR by where the lookup tables lie"
set format y '%.0s %cbit/s'
plot '002_table_2.dat' using 2:xtic(1) with histogram lt 1 title "paper: highest", \
  '002_table_2.dat' using 3:xtic(1) with histogram lt 2 title "paper: highest with transfer", \
  '002_table_2.dat' using 4:xtic(1) with histogram lt 3 title "without copies", \
  '002_table_2.dat' using 5:xtic(1) with histogram lt 4 title "with copies"
