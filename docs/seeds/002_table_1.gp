# gnuplot 002_table_1.gp makes 002_table_1.svg.
set encoding utf8
set terminal svg size 860,420 noenhanced font 'sans,11' background 'white'
set output '002_table_1.svg'
set datafile missing '?'
set grid
set logscale y
set linetype 5 lc rgb 'dark-goldenrod'
set linetype 9 lc rgb 'gray40'
set style fill solid 0.8
set boxwidth 0.9
set xtics rotate by -25
set key outside right top
set title "Table 1: 5 billion reads of a lookup table"
set format y '%.0s %cs'
plot '002_table_1.dat' using 2:xtic(1) with histogram lt 1 title "coherent reads", \
  '002_table_1.dat' using 3:xtic(1) with histogram lt 2 title "random reads"
